<?php

declare(strict_types=1);

namespace Vodbox;

/** Verification of webhook deliveries. */
final class Webhook
{
    /** While a secret is rotated there are two. */
    private const MOST_SIGNATURES = 10;

    /**
     * Verifies a delivery and returns its event.
     *
     * `$body` is the raw body, byte for byte: `file_get_contents('php://input')`. `$signature` is the header
     * `Svc-Signature`: `$_SERVER['HTTP_SVC_SIGNATURE'] ?? ''`. `$secrets` is the secret of the endpoint, or several, of which
     * any may match. A delivery that was signed more than `$toleranceSeconds` ago is refused: an attacker may repeat an old
     * one. Deliveries may arrive twice: store the `id` of each event.
     *
     * @param string|list<string> $secrets
     * @return array<string, mixed>
     * @throws WebhookException
     */
    public static function verify(
        string $body,
        string $signature,
        #[\SensitiveParameter] string|array $secrets,
        float $toleranceSeconds = 300,
    ): array {
        $candidates = (array) $secrets;
        if ($candidates === [] || in_array('', $candidates, true)) {
            throw new \InvalidArgumentException('A secret is required.');
        }
        [$time, $signatures] = self::parse($signature);
        // Every pair is compared, so the time does not depend on which one matches.
        $matches = false;
        foreach ($candidates as $secret) {
            $expected = hash_hmac('sha256', "{$time}.{$body}", $secret);
            foreach ($signatures as $each) {
                $matches = hash_equals($expected, $each) || $matches;
            }
        }
        if (!$matches) {
            throw new WebhookException('The signature does not match the body and the secret.');
        }
        if (abs(time() - (int) $time) > $toleranceSeconds) {
            throw new WebhookException('The delivery is too old, or the clocks differ.');
        }
        $event = json_decode($body, true);
        if (!is_array($event)) {
            throw new WebhookException('The body is not JSON.');
        }
        return $event;
    }

    /** @return array{string, list<string>} the time and the signatures of `t=<seconds>,v1=<hex>,…` */
    private static function parse(string $header): array
    {
        if ($header === '') {
            throw new WebhookException('The request has no header Svc-Signature.');
        }
        $time = '';
        $signatures = [];
        foreach (explode(',', substr($header, 0, 4096)) as $part) {
            [$name, $value] = explode('=', trim($part), 2) + [1 => ''];
            if ($name === 't') {
                $time = $value;
            } elseif ($name === 'v1' && count($signatures) < self::MOST_SIGNATURES) {
                $signatures[] = strtolower($value);
            }
        }
        if (!ctype_digit($time) || strlen($time) > 12 || $signatures === []) {
            throw new WebhookException('The header Svc-Signature is malformed.');
        }
        return [$time, $signatures];
    }
}
