import type { ClientOptions } from "./options.ts";
import { fileSource } from "./upload/file.ts";
import { type UploadOptions, type UploadResult, uploadSource } from "./upload/upload.ts";
import { Vodbox as Client, type SizedStream } from "./vodbox.ts";

export * from "./index.ts";
export { fileStorage } from "./upload/file.ts";

/** A client of one server. Default: the server of `VODBOX_SERVER`, with the API key of `VODBOX_KEY`. */
export class Vodbox extends Client {
  constructor(options: ClientOptions = {}) {
    const { VODBOX_SERVER: server, VODBOX_KEY: key } = process.env;
    const baseUrl = options.baseUrl ?? server;
    if (!baseUrl) throw new TypeError("Set baseUrl, or VODBOX_SERVER, to the URL of the server.");
    // The key of one server must not be sent to another one.
    const isOwn = options.baseUrl === undefined && !(options.adminToken ?? options.workerToken);
    super({ ...(isOwn && key && { apiKey: key }), ...options, baseUrl });
  }

  /** Uploads a file by its path, a blob or a stream; as in browsers otherwise. */
  override async upload(file: string | Blob | SizedStream, options: UploadOptions = {}): Promise<UploadResult> {
    if (typeof file !== "string") return super.upload(file, options);
    return uploadSource(this.options, await fileSource(file), options);
  }
}
