import type { InitiatedUpload } from "../../../../build/client/methods.ts";
import { errorOf } from "../error.ts";
import { type SendOptions, sendAll, type Target } from "./send-all.ts";
import { type BytesResponse, sendBytes } from "./send-bytes.ts";
import { blobSource } from "./source.ts";

/** What `initiateUpload` returns, or the part of it that a page needs. */
export type UploadUrl = Pick<InitiatedUpload, "upload_url"> & Partial<Pick<InitiatedUpload, "upload_headers">>;

/**
 * Sends a file to the `upload_url` of an upload, which needs no key, so that a page can. Afterwards your server calls
 * `completeUpload`. Continues an interrupted call where it ended, except with objects on S3, which takes only whole files.
 */
export async function uploadToUrl(upload: UploadUrl, file: Blob, options: SendOptions = {}): Promise<void> {
  const source = blobSource(file);
  const target = isS3(upload.upload_url) ? wholeFile(upload, file.size) : chunks(upload, file.size);
  // Whatever is wrong, the first chunk fails for the same reason, and is retried where that helps.
  const offset = await target.offset(options.signal).catch(() => 0);
  await sendAll(target, source, offset, options);
}

/** A presigned URL of S3 (Signature Version 4). */
const isS3 = (url: string) => new URL(url).searchParams.has("X-Amz-Signature");

const wholeFile = (upload: UploadUrl, size: number): Target => ({
  isWhole: true,
  async append(_, body, options) {
    const response = await put(upload, body, {}, options);
    if (response.status !== 200) throw refused(response);
    return size;
  },
  offset: async () => 0,
});

/** Chunks of one file as in resumable uploads of Google Cloud Storage: 308 with the received range until it is complete. */
function chunks(upload: UploadUrl, size: number): Target {
  const offsetIn = (response: BytesResponse) => {
    if (response.status === 200) return size;
    if (response.status !== 308) throw refused(response);
    return Number(/^bytes=0-(\d+)$/.exec(response.header("range") ?? "")?.[1] ?? -1) + 1;
  };
  return {
    async append(offset, body, options) {
      const length = body instanceof Blob ? body.size : body.length;
      const range = `bytes ${offset}-${offset + length - 1}/${size}`;
      return offsetIn(await put(upload, body, { "Content-Range": range }, options));
    },
    async offset(signal) {
      const options = { signal, onSent() {} };
      return offsetIn(await put(upload, new Blob([]), { "Content-Range": `bytes */${size}` }, options));
    },
  };
}

type PutOptions = { signal?: AbortSignal | undefined; onSent(bytes: number): void };
const put = (
  { upload_url: url, upload_headers }: UploadUrl,
  body: Blob | Uint8Array<ArrayBuffer>,
  headers: Record<string, string>,
  options: PutOptions,
) =>
  sendBytes({ method: "PUT", url, headers: { ...upload_headers, ...headers }, body, redirect: "follow", ...options });

const refused = ({ status, header, text }: BytesResponse) => errorOf(status, header, text);
