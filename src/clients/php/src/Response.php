<?php

declare(strict_types=1);

namespace Vodbox;

/** A response with a status of 200 to 299. Names of headers are in lower case. */
final class Response
{
    /** @param array<string, string> $headers */
    public function __construct(
        public readonly int $status,
        public readonly array $headers,
        public readonly string $body,
    ) {
    }

    public function isJson(): bool
    {
        $type = strtolower(trim(explode(';', $this->headers['content-type'] ?? '')[0]));
        return $type === 'application/json' || str_ends_with($type, '+json');
    }

    /** @throws VodboxException when the body is no JSON: it is the response of a proxy, or of another server. */
    public function json(): mixed
    {
        try {
            return json_decode($this->body, true, 512, JSON_THROW_ON_ERROR | JSON_BIGINT_AS_STRING);
        } catch (\JsonException $error) {
            $type = $this->headers['content-type'] ?? 'no media type';
            $message = "The response is not JSON, but {$type}; is the base URL that of vodbox?";
            throw new VodboxException($message, 'invalid_response', $this->status, previous: $error);
        }
    }
}
