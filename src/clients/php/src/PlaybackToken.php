<?php

declare(strict_types=1);

namespace Vodbox;

/** Playback tokens that a server signs itself. */
final class PlaybackToken
{
    /** An Ed25519 private key in PKCS #8 (RFC 8410) is these bytes, and 32 of the seed. */
    private const ED25519_PREFIX = '302e020100300506032b657004220420';

    /**
     * Signs a token for the playback of one asset.
     *
     * `$asset` is its `vid_…` id, your own `external_id`, or its number. `$keyId` (`sk_…`) and `$privateKey` are those of a
     * signing key; the private key is PEM, or the base64 of it that the server shows. RSA keys sign with RS256, Ed25519
     * keys with EdDSA. The token is valid for `$expiresIn` seconds, and from the Unix time `$notBefore` on. `$audience` is
     * `v` for everything, `t` for the thumbnail, `s` for the storyboard, `g` for an animation.
     *
     * @throws \InvalidArgumentException for a key that cannot be used
     */
    public static function sign(
        string|int $asset,
        string $keyId,
        #[\SensitiveParameter] string $privateKey,
        int $expiresIn = 7200,
        string $audience = 'v',
        ?int $notBefore = null,
    ): string {
        if ($expiresIn <= 0) {
            throw new \InvalidArgumentException('$expiresIn must be positive.');
        }
        $pem = str_contains($privateKey, '-----BEGIN') ? $privateKey : (string) base64_decode($privateKey, true);
        $seed = self::ed25519Seed($pem);
        $claims = ['sub' => (string) $asset, 'aud' => $audience, 'exp' => time() + $expiresIn];
        if ($notBefore !== null) {
            $claims['nbf'] = $notBefore;
        }
        $header = ['alg' => $seed === null ? 'RS256' : 'EdDSA', 'typ' => 'JWT', 'kid' => $keyId];
        $text = self::encode(json_encode($header, JSON_THROW_ON_ERROR)) . '.' . self::encode(json_encode($claims, JSON_THROW_ON_ERROR));
        return $text . '.' . self::encode($seed === null ? self::rsa($text, $pem) : self::ed25519($text, $seed));
    }

    private static function rsa(string $text, #[\SensitiveParameter] string $pem): string
    {
        $key = $pem === '' ? false : openssl_pkey_get_private($pem);
        $type = $key === false ? null : openssl_pkey_get_details($key)['type'] ?? null;
        if ($key === false || $type !== OPENSSL_KEYTYPE_RSA || !openssl_sign($text, $signature, $key, OPENSSL_ALGO_SHA256)) {
            throw new \InvalidArgumentException('A signing key is an RSA or Ed25519 key, not encrypted, as PEM or its base64.');
        }
        return $signature;
    }

    private static function ed25519(string $text, #[\SensitiveParameter] string $seed): string
    {
        if (!function_exists('sodium_crypto_sign_seed_keypair')) {
            throw new \InvalidArgumentException('Ed25519 keys need the extension sodium.');
        }
        return sodium_crypto_sign_detached($text, sodium_crypto_sign_secretkey(sodium_crypto_sign_seed_keypair($seed)));
    }

    private static function ed25519Seed(#[\SensitiveParameter] string $pem): ?string
    {
        $der = base64_decode((string) preg_replace('/-----[^-]*-----|\s+/', '', $pem), true);
        $prefix = (string) hex2bin(self::ED25519_PREFIX);
        return is_string($der) && strlen($der) === 48 && str_starts_with($der, $prefix) ? substr($der, 16) : null;
    }

    private static function encode(string $bytes): string
    {
        return rtrim(strtr(base64_encode($bytes), '+/', '-_'), '=');
    }
}
