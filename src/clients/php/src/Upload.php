<?php

declare(strict_types=1);

namespace Vodbox;

/**
 * A resumable upload of one file. Parts are sent one after another. The server knows which parts are complete, so that an
 * interrupted upload sends only the rest.
 *
 * @internal
 */
final class Upload
{
    /** A part survives the restart of a server. */
    private const PART_RETRIES = 8;

    private readonly int $size;
    /** @var array<string, mixed> */
    private readonly array $fields;
    private readonly string $fingerprint;
    private string $key;
    private ?int $uploadId = null;

    /**
     * @param resource $file
     * @param array<string, mixed> $fields
     * @param callable(int, int): void|null $onProgress
     */
    public function __construct(
        private readonly Client $client,
        private readonly mixed $file,
        array $fields,
        ?string $filename,
        private readonly mixed $onProgress,
        private readonly ?string $resumeFile,
    ) {
        if (fseek($file, 0, SEEK_END) !== 0) {
            throw new \InvalidArgumentException('The file must be able to seek.');
        }
        $this->size = (int) ftell($file);
        $name = $filename ?? basename(stream_get_meta_data($file)['uri'] ?? '');
        $this->fields = ['filename' => $name === '' ? 'video' : $name, 'bytes_expected' => $this->size] + $fields;
        // A changed file or title is another upload.
        $identity = [$client->baseUrl, $this->fields, fstat($file)['mtime'] ?? null];
        $this->fingerprint = hash('sha256', json_encode($identity, JSON_THROW_ON_ERROR));
        $this->key = Client::newKey();
        $this->restore();
    }

    /** Uploads the file, or what is missing of it. Returns the id of the asset. */
    public function run(): int
    {
        // A repeated request may return an upload that has expired since.
        $upload = $this->resumed() ?? $this->initiated() ?? $this->initiated();
        if ($upload === null) {
            throw new VodboxException('The upload ended before its bytes were sent.', 'upload_conflict');
        }
        if ($upload['status'] !== 'completed') {
            $etags = array_column($upload['parts'] ?? [], 'etag', 'part_number');
            for ($number = 1; $number <= $upload['part_count']; $number++) {
                $etags[$number] ??= $this->sendPart($upload['id'], $number, $upload['part_size']);
                $this->report(min($number * $upload['part_size'], $this->size));
            }
            $this->complete($upload['id'], $etags);
        }
        $this->report($this->size);
        return $upload['asset_id'];
    }

    /** Deletes the file with what is needed to resume. */
    public function forget(): void
    {
        if ($this->resumeFile !== null && file_exists($this->resumeFile)) {
            unlink($this->resumeFile);
        }
    }

    /** @return array<string, mixed>|null */
    private function initiated(): ?array
    {
        // The key is stored before the request is sent: a repeat after a crash returns the same upload.
        $this->save();
        $answer = $this->client->request('POST', '/api/v1/uploads/initiate_multipart', [
            'json' => (object) $this->fields,
            'idempotency_key' => $this->key,
        ]);
        $this->uploadId = $answer['id'];
        $this->save();
        // The response to a repeated request lacks the parts that were sent since.
        return $this->resumed();
    }

    /** @return array<string, mixed>|null */
    private function resumed(): ?array
    {
        if ($this->uploadId === null) {
            return null;
        }
        try {
            $upload = $this->client->getUpload($this->uploadId);
            if (in_array($upload['status'], ['pending', 'completed'], true)) {
                return $upload;
            }
        } catch (VodboxException $error) {
            if (!in_array($error->status, [404, 410], true)) {
                throw $error;
            }
        }
        $this->key = Client::newKey();
        $this->uploadId = null;
        return null;
    }

    private function sendPart(int $uploadId, int $number, int $partSize): string
    {
        $signed = $this->client->signUploadPart($uploadId, ['part_number' => $number]);
        $start = ($number - 1) * $partSize;
        $length = min($partSize, $this->size - $start);
        $body = new FileRange($this->file, $start, $length, fn (int $read) => $this->report($start + $read));
        // Without the API key: the URL is the credential, and may be one of another host.
        $response = $this->client->transport->send(
            $signed['method'],
            $signed['url'],
            array_map('strval', (array) $signed['headers']),
            $body,
            maxRetries: self::PART_RETRIES,
        );
        $etag = $response->headers['etag'] ?? '';
        if ($etag === '') {
            throw new VodboxException('The storage returned no ETag for a part.', 'etag_missing');
        }
        return $etag;
    }

    /** @param array<int, string> $etags */
    private function complete(int $uploadId, array $etags): void
    {
        ksort($etags);
        $parts = [];
        foreach ($etags as $number => $etag) {
            $parts[] = ['part_number' => $number, 'etag' => $etag];
        }
        $this->client->request('POST', "/api/v1/uploads/{$uploadId}/complete_multipart", [
            'json' => ['parts' => $parts, 'bytes_received' => $this->size],
            'is_repeatable' => true,
        ]);
    }

    private function report(int $position): void
    {
        if ($this->onProgress !== null) {
            ($this->onProgress)($position, $this->size);
        }
    }

    private function restore(): void
    {
        $text = $this->resumeFile === null ? false : @file_get_contents($this->resumeFile, false, null, 0, 65_536);
        $stored = $text === false ? null : json_decode($text, true);
        if (!is_array($stored) || ($stored['fingerprint'] ?? null) !== $this->fingerprint) {
            return;
        }
        $this->key = is_string($stored['key'] ?? null) ? $stored['key'] : $this->key;
        $this->uploadId = is_int($stored['upload_id'] ?? null) ? $stored['upload_id'] : null;
    }

    /** Replaces the file atomically, and syncs it. */
    private function save(): void
    {
        if ($this->resumeFile === null) {
            return;
        }
        $state = ['fingerprint' => $this->fingerprint, 'key' => $this->key, 'upload_id' => $this->uploadId];
        $temporary = $this->resumeFile . '.' . getmypid() . '.tmp';
        $mask = umask(0077);
        $file = @fopen($temporary, 'wb');
        umask($mask);
        if ($file === false) {
            throw new \InvalidArgumentException("{$temporary} cannot be written.");
        }
        fwrite($file, json_encode($state, JSON_THROW_ON_ERROR));
        fsync($file);
        fclose($file);
        rename($temporary, $this->resumeFile);
    }
}
