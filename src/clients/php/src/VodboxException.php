<?php

declare(strict_types=1);

namespace Vodbox;

/**
 * A request failed.
 *
 * Match on `errorCode`, which is stable; the message is a sentence for people. `status` is the HTTP status, or null when
 * there was no response. `details` has messages by field. `requestId` identifies the request in the log of the server.
 * `retryAfter` is the wait in seconds that the server asks for, or null.
 */
class VodboxException extends \RuntimeException
{
    /** @param array<string, mixed> $details */
    public function __construct(
        string $message,
        public readonly string $errorCode,
        public readonly ?int $status = null,
        public readonly ?string $requestId = null,
        public readonly array $details = [],
        public readonly ?float $retryAfter = null,
        ?\Throwable $previous = null,
    ) {
        parent::__construct($message, 0, $previous);
    }

    public function __toString(): string
    {
        $parts = array_filter([$this->status, $this->errorCode, $this->requestId], fn ($part) => $part !== null);
        return $this->getMessage() . ' (' . implode(', ', $parts) . ")\n" . $this->getTraceAsString();
    }
}
