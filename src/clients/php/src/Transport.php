<?php

declare(strict_types=1);

namespace Vodbox;

/** Sends requests by curl, and repeats those that are safe to repeat. */
final class Transport
{
    private const BACKOFF_SECONDS = 0.5;
    private const LONGEST_BACKOFF_SECONDS = 8.0;
    /** A server that asks for a longer wait gets no retry: the caller decides. */
    private const LONGEST_WAIT_SECONDS = 60.0;
    /** The request was not sent, so every method may be repeated. */
    private const NOT_SENT = [CURLE_COULDNT_RESOLVE_HOST, CURLE_COULDNT_RESOLVE_PROXY, CURLE_COULDNT_CONNECT];
    private const REPEATABLE = ['GET', 'HEAD', 'PUT'];

    private \CurlHandle $curl;

    /**
     * `$curlOptions` are more options of curl, such as `CURLOPT_PROXY` or `CURLOPT_CAINFO`.
     *
     * @param array<int, mixed> $curlOptions
     */
    public function __construct(
        private readonly float $timeout,
        private readonly int $maxRetries,
        private readonly array $curlOptions = [],
    ) {
        $this->curl = curl_init();
    }

    /**
     * The response, with a status of 200 to 299: a redirect is an error, because it could lead to another server.
     *
     * `$isRepeatable` says whether the request may be repeated when it is unknown whether it was processed; by default
     * GET, HEAD and PUT are, and requests with an Idempotency-Key.
     *
     * @param array<string, string> $headers
     * @param string|FileRange|array<string, mixed>|null $body
     * @throws VodboxException
     */
    public function send(
        string $method,
        string $url,
        array $headers = [],
        string|FileRange|array|null $body = null,
        ?bool $isRepeatable = null,
        ?int $maxRetries = null,
    ): Response {
        $isRepeatable ??= in_array($method, self::REPEATABLE, true) || isset($headers['Idempotency-Key']);
        $retries = $maxRetries ?? $this->maxRetries;
        for ($attempt = 0; ; $attempt++) {
            $response = null;
            try {
                $response = $this->attempt($method, $url, $headers, $body);
                if ($response->status >= 200 && $response->status < 300) {
                    return $response;
                }
                $error = self::errorOf($response);
                $wait = self::waitFor($error, $isRepeatable, $attempt);
            } catch (VodboxException $failure) {
                $error = $failure;
                $isUnsent = in_array($failure->getPrevious()?->getCode(), self::NOT_SENT, true);
                $isFileFault = $failure->errorCode === 'file_changed';
                $wait = !$isFileFault && ($isRepeatable || $isUnsent) ? self::backoff($attempt) : null;
            }
            if ($wait === null || $attempt >= $retries) {
                throw $error;
            }
            usleep((int) ($wait * 1e6));
        }
    }

    /**
     * @param array<string, string> $headers
     * @param string|FileRange|array<string, mixed>|null $body
     */
    private function attempt(string $method, string $url, array $headers, string|FileRange|array|null $body): Response
    {
        $received = [];
        $lines = ['Expect:', 'User-Agent: vodbox-php/' . Client::VERSION];
        foreach ($headers as $name => $value) {
            $lines[] = "{$name}: {$value}";
        }
        curl_reset($this->curl);
        curl_setopt_array($this->curl, $this->curlOptions + [
            CURLOPT_URL => $url,
            CURLOPT_CUSTOMREQUEST => $method,
            CURLOPT_HTTPHEADER => $lines,
            CURLOPT_RETURNTRANSFER => true,
            CURLOPT_NOBODY => $method === 'HEAD',
            CURLOPT_PATH_AS_IS => true,
            CURLOPT_PROTOCOLS => CURLPROTO_HTTP | CURLPROTO_HTTPS,
            CURLOPT_CONNECTTIMEOUT_MS => (int) ($this->timeout * 1000),
            // As long as bytes flow, a large upload may take longer.
            CURLOPT_LOW_SPEED_LIMIT => 1,
            CURLOPT_LOW_SPEED_TIME => (int) max(1, ceil($this->timeout)),
            CURLOPT_HEADERFUNCTION => function ($_, string $line) use (&$received): int {
                $parts = explode(':', $line, 2);
                // The headers of an interim response do not count.
                if (str_starts_with($line, 'HTTP/')) {
                    $received = [];
                } elseif (count($parts) === 2) {
                    $received[strtolower(trim($parts[0]))] = trim($parts[1]);
                }
                return strlen($line);
            },
        ]);
        if ($body instanceof FileRange) {
            $body->rewind();
            curl_setopt_array($this->curl, [
                CURLOPT_UPLOAD => true,
                CURLOPT_CUSTOMREQUEST => $method,
                CURLOPT_INFILESIZE => $body->length,
                CURLOPT_READFUNCTION => fn ($_, $__, int $length): string => $body->read($length),
            ]);
        } elseif ($body !== null) {
            curl_setopt($this->curl, CURLOPT_POSTFIELDS, $body);
        }
        $text = curl_exec($this->curl);
        if ($text === false) {
            $cause = new \RuntimeException(curl_error($this->curl), curl_errno($this->curl));
            if ($body instanceof FileRange && $body->isShort()) {
                throw new VodboxException('The file became shorter while it was read.', 'file_changed', previous: $cause);
            }
            // A presigned URL is a credential, and errors are logged.
            $shown = explode('?', $url, 2)[0];
            throw new VodboxException("{$method} {$shown}: {$cause->getMessage()}", 'connection_failed', previous: $cause);
        }
        return new Response((int) curl_getinfo($this->curl, CURLINFO_RESPONSE_CODE), $received, (string) $text);
    }

    /** The error that a response means. A proxy's response has no JSON; its code is `http_<status>`. */
    private static function errorOf(Response $response): VodboxException
    {
        $fields = json_decode($response->body, true);
        $fields = is_array($fields) ? $fields : [];
        $status = $response->status;
        $location = $response->headers['location'] ?? null;
        $redirect = $location !== null && $status >= 300 && $status < 400
            ? '; the base URL may have to be that of ' . substr($location, 0, 200)
            : '';
        $details = $fields['details'] ?? null;
        return new VodboxException(
            is_string($fields['error'] ?? null) ? $fields['error'] : "HTTP status {$status}{$redirect}",
            is_string($fields['code'] ?? null) ? $fields['code'] : "http_{$status}",
            $status,
            $fields['request_id'] ?? $response->headers['x-request-id'] ?? null,
            is_array($details) ? $details : [],
            self::retryAfter($response->headers['retry-after'] ?? ''),
        );
    }

    /** Seconds until the next attempt, or null when there is none. */
    private static function waitFor(VodboxException $error, bool $isRepeatable, int $attempt): ?float
    {
        $status = $error->status;
        if (in_array($status, [429, 503], true) && $error->retryAfter !== null) {
            // Refused before it was processed.
            return $error->retryAfter <= self::LONGEST_WAIT_SECONDS ? $error->retryAfter : null;
        }
        if ($status === 429 || ($isRepeatable && in_array($status, [502, 503, 504], true))) {
            return self::backoff($attempt);
        }
        return null;
    }

    private static function backoff(int $attempt): float
    {
        $longest = min(self::LONGEST_BACKOFF_SECONDS, self::BACKOFF_SECONDS * 2 ** min($attempt, 10));
        return $longest / 2 + $longest / 2 * (random_int(0, 1_000_000) / 1_000_000);
    }

    /** Seconds, from a number or a date (RFC 9110, 10.2.3). */
    private static function retryAfter(string $text): ?float
    {
        if (ctype_digit($text) && strlen($text) < 10) {
            return (float) $text;
        }
        $date = \DateTimeImmutable::createFromFormat('D, d M Y H:i:s \G\M\T', $text, new \DateTimeZone('UTC'));
        return $date === false ? null : max(0.0, (float) ($date->getTimestamp() - time()));
    }
}
