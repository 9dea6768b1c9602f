<?php

declare(strict_types=1);

namespace Vodbox;

/** Bytes of a file that can seek, read in small pieces; for a retry they are read again. */
final class FileRange
{
    private int $position = 0;

    /**
     * @param resource $file
     * @param \Closure(int): void|null $onRead called with the number of bytes read so far
     */
    public function __construct(
        private readonly mixed $file,
        private readonly int $start,
        public readonly int $length,
        private readonly ?\Closure $onRead = null,
    ) {
    }

    /**
     * What a file has from its current position to its end.
     *
     * @param resource $file
     */
    public static function remaining(mixed $file): self
    {
        $start = ftell($file);
        if ($start === false || fseek($file, 0, SEEK_END) !== 0) {
            throw new \InvalidArgumentException('The file must be able to seek.');
        }
        return new self($file, $start, (int) ftell($file) - $start);
    }

    public function rewind(): void
    {
        fseek($this->file, $this->start);
        $this->position = 0;
    }

    /** At most `$length` bytes; empty at the end, and where the file became shorter. */
    public function read(int $length): string
    {
        if ($this->isComplete()) {
            return '';
        }
        $bytes = (string) fread($this->file, max(1, min($length, $this->length - $this->position)));
        $this->position += strlen($bytes);
        if ($bytes !== '' && $this->onRead !== null) {
            ($this->onRead)($this->position);
        }
        return $bytes;
    }

    private function isComplete(): bool
    {
        return $this->position === $this->length;
    }

    /** Whether the file ended early: it was changed while it was read. */
    public function isShort(): bool
    {
        return !$this->isComplete() && feof($this->file);
    }
}
