<?php

declare(strict_types=1);

namespace Vodbox;

/**
 * A client of one server.
 *
 * `$baseUrl` is the URL of the server, such as `https://video.example.com`. Give the credential that the calls need: the
 * API key of a tenant, or the token of an operator, a worker, a live gateway or a batch upload. With several, an operation
 * uses the first one that it accepts, an API key before an operator's token.
 *
 * `$timeout` is in seconds, for the connection and for each wait for bytes. `$maxRetries` is the number of repeats of a
 * request that is safe to repeat, after connection errors and the statuses 429, 502, 503 and 504; `Retry-After` is
 * respected up to a minute. `$curlOptions` are more options of curl.
 */
final class Client extends Operations
{
    public const VERSION = '0';

    private const LONGEST_POLL_SECONDS = 10.0;

    public readonly string $baseUrl;
    public readonly Transport $transport;
    /** @var array<string, string> */
    private readonly array $tokens;

    /** @param array<int, mixed> $curlOptions */
    public function __construct(
        string $baseUrl,
        ?string $apiKey = null,
        ?string $adminToken = null,
        ?string $workerToken = null,
        ?string $liveToken = null,
        ?string $batchToken = null,
        float $timeout = 60.0,
        int $maxRetries = 3,
        array $curlOptions = [],
    ) {
        $this->baseUrl = rtrim($baseUrl, '/');
        $tokens = [
            'apiKey' => $apiKey,
            'adminToken' => $adminToken,
            'workerToken' => $workerToken,
            'gatewayToken' => $liveToken,
            'batchToken' => $batchToken,
        ];
        $this->tokens = array_filter($tokens, fn (?string $token): bool => $token !== null && $token !== '');
        $this->transport = new Transport($timeout, $maxRetries, $curlOptions);
    }

    public function request(string $method, string $path, array $options = []): mixed
    {
        $response = $this->send($method, $path, $options);
        if ($response->status === 204 || $response->body === '') {
            return null;
        }
        $type = $response->headers['content-type'] ?? '';
        // A page of a proxy, or of another server, is no result.
        return $response->isJson() || str_starts_with($type, 'text/html') ? $response->json() : $response->body;
    }

    protected function records(string $path, array $options): Records
    {
        $fetch = function (?string $cursor) use ($path, $options): array {
            $options['query'] = ['cursor' => $cursor] + ($options['query'] ?? []);
            $response = $this->send('GET', $path, $options);
            return ['records' => $response->json(), 'next_cursor' => self::nextCursor($response)];
        };
        return new Records($fetch, $options['query']['cursor'] ?? null);
    }

    /**
     * Uploads a video and returns its asset.
     *
     * `$file` is a path, or a file that is open for reading and can seek. Memory use does not depend on its size. `$fields`
     * are those of `initiateMultipartUpload`, such as `title`, `description`, `tags`, `collection_id`, `external_id`,
     * `playback_policy`, `captions`.
     *
     * `$onProgress(int $sent, int $total)` is called with numbers of bytes; `$sent` decreases when a part is sent again.
     * After an interruption, even `kill -9`, the same call with the same `$resumeFile` sends only the parts that are
     * missing. That file is small, is private to one upload, and is deleted at the end. A changed file starts a new upload.
     *
     * @param string|resource $file
     * @param array<string, mixed> $fields
     * @param callable(int, int): void|null $onProgress
     * @return array<string, mixed>
     * @throws VodboxException
     */
    public function upload(
        mixed $file,
        array $fields = [],
        ?string $filename = null,
        ?callable $onProgress = null,
        ?string $resumeFile = null,
        bool $waitUntilReady = false,
        ?float $waitTimeout = null,
    ): array {
        $opened = is_string($file) ? @fopen($file, 'rb') : $file;
        if (!is_resource($opened)) {
            throw new \InvalidArgumentException(is_string($file) ? "{$file} cannot be read." : 'A file is required.');
        }
        try {
            $upload = new Upload($this, $opened, $fields, $filename, $onProgress, $resumeFile);
            $assetId = $upload->run();
            try {
                $asset = $waitUntilReady ? $this->waitUntilReady($assetId, $waitTimeout) : $this->getAsset($assetId);
            } catch (AssetFailed $failure) {
                $upload->forget();
                throw $failure;
            }
            $upload->forget();
            return $asset;
        } finally {
            if (is_string($file)) {
                fclose($opened);
            }
        }
    }

    /**
     * Polls an asset until it can be played, and returns it. By default it waits without limit.
     *
     * @return array<string, mixed>
     * @throws AssetFailed when it cannot be played
     * @throws VodboxException with the code `timeout` after `$timeout` seconds
     */
    public function waitUntilReady(int|string $assetId, ?float $timeout = null): array
    {
        $from = microtime(true);
        for ($wait = 0.5; ; $wait = min(self::LONGEST_POLL_SECONDS, $wait * 1.5)) {
            $asset = $this->getAsset($assetId);
            if ($asset['playback_status'] === 'ready') {
                return $asset;
            }
            if ($asset['playback_status'] === 'errored') {
                throw new AssetFailed(
                    $asset['error']['message'] ?? 'The video cannot be played.',
                    $asset['error']['code'] ?? 'asset_errored',
                );
            }
            if ($timeout !== null && microtime(true) + $wait > $from + $timeout) {
                throw new VodboxException("Asset {$assetId} is {$asset['playback_status']} after {$timeout} s.", 'timeout');
            }
            usleep((int) ($wait * 1e6));
        }
    }

    /** @param array<string, mixed> $options */
    private function send(string $method, string $path, array $options): Response
    {
        $available = $this->tokens + ($options['tokens'] ?? []);
        $headers = [];
        foreach ($options['auth'] ?? [['apiKey'], ['adminToken']] as $schemes) {
            if (array_diff($schemes, array_keys($available)) === []) {
                foreach ($schemes as $scheme) {
                    $headers[self::SECURITY_HEADERS[$scheme]] = $available[$scheme];
                }
                break;
            }
        }
        foreach ($options['headers'] ?? [] as $name => $value) {
            if ($value !== null) {
                $headers[$name] = (string) $value;
            }
        }
        if (isset($options['idempotency_key'])) {
            $headers['Idempotency-Key'] = $options['idempotency_key'];
        }
        $query = http_build_query(array_map(self::text(...), array_filter(
            $options['query'] ?? [],
            fn (mixed $value): bool => $value !== null,
        )), '', '&', PHP_QUERY_RFC3986);
        [$body, $type] = self::bodyOf($options);
        if ($type !== null) {
            $headers['Content-Type'] = $type;
        }
        $url = $this->baseUrl . $path . ($query === '' ? '' : "?{$query}");
        return $this->transport->send($method, $url, $headers, $body, $options['is_repeatable'] ?? null);
    }

    /**
     * @param array<string, mixed> $options
     * @return array{string|FileRange|array<string, mixed>|null, string|null} the body, and its media type
     */
    private static function bodyOf(array $options): array
    {
        if (array_key_exists('json', $options)) {
            $flags = JSON_THROW_ON_ERROR | JSON_UNESCAPED_UNICODE | JSON_UNESCAPED_SLASHES | JSON_PRESERVE_ZERO_FRACTION;
            return [json_encode($options['json'], $flags), 'application/json'];
        }
        if (array_key_exists('content', $options)) {
            $content = $options['content'];
            return [is_resource($content) ? FileRange::remaining($content) : (string) $content, $options['content_type']];
        }
        if (!array_key_exists('form', $options)) {
            return [null, null];
        }
        $parts = [];
        foreach ($options['form'] as $name => $value) {
            if ($value === null) {
                continue;
            }
            if (!in_array($name, $options['files'], true)) {
                $parts[$name] = self::text($value);
                continue;
            }
            // Files in forms are small, and a retry needs their bytes again.
            $bytes = is_resource($value) ? (string) stream_get_contents($value) : (string) $value;
            $parts[$name] = new \CURLStringFile($bytes, $name);
        }
        return [$parts, null];
    }

    private static function text(mixed $value): string
    {
        return is_bool($value) ? ($value ? 'true' : 'false') : (string) $value;
    }

    /** Only the cursor of the link is used: the request, with its credential, always goes to this server. */
    private static function nextCursor(Response $response): ?string
    {
        foreach (explode(',', $response->headers['link'] ?? '') as $link) {
            if (preg_match('/^\s*<([^<>]*)>\s*;\s*rel="?next"?/', $link, $found) === 1) {
                parse_str((string) parse_url($found[1], PHP_URL_QUERY), $query);
                return is_string($query['cursor'] ?? null) ? $query['cursor'] : null;
            }
        }
        return null;
    }
}
