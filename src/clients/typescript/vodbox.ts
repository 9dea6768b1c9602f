import type { Asset } from "../../../build/client/methods.ts";
import { Api } from "./api.ts";
import { untilReady } from "./ready.ts";
import { blobSource, type Source, streamSource } from "./upload/source.ts";
import { type UploadOptions, type UploadResult, uploadSource } from "./upload/upload.ts";

/** A stream, whose size in bytes must be known before. */
export type SizedStream = {
  stream: ReadableStream<Uint8Array> | AsyncIterable<Uint8Array>;
  size: number;
  filename?: string;
};

/** A client of one server, with one set of credentials. */
export class Vodbox extends Api {
  /**
   * Uploads a file in chunks, in constant memory, through connections that break. Needs an API key with `assets:write`, such
   * as a device token.
   */
  upload(file: Blob | SizedStream, options: UploadOptions = {}): Promise<UploadResult> {
    return uploadSource(this.options, sourceOf(file), options);
  }

  /** Waits until an asset plays. Throws VodboxError with the asset's error when it cannot be played. */
  waitUntilReady(assetId: number, { signal }: { signal?: AbortSignal } = {}): Promise<Asset> {
    return untilReady(this, assetId, signal);
  }
}

function sourceOf(file: Blob | SizedStream): Source {
  if (file instanceof Blob) return blobSource(file);
  const { stream, size, filename } = file;
  return { ...streamSource(stream, size), filename };
}
