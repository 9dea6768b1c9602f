import { VodboxError } from "../error.ts";
import type { ClientOptions } from "../options.ts";
import { baseUrlOf } from "../request.ts";
import type { Params } from "../types.ts";
import { type SendOptions, sendAll } from "./send-all.ts";
import type { Source } from "./source.ts";
import { pageStorage, type ResumeStorage } from "./storage.ts";
import { createUpload, findUpload, type TusUpload, tusTarget } from "./tus.ts";

/** Fields of the asset, as in `initiateUpload`. */
type AssetFields = Omit<
  NonNullable<Params<"initiateUpload">["body"]>,
  "filename" | "bytes_expected" | "content_type" | "source_width" | "source_height" | "tags"
>;

export type UploadOptions = AssetFields &
  SendOptions & {
    /** Default: the name of the file. */
    filename?: string;
    /** Media type; default: that of the file. */
    content_type?: string;
    /**
     * Where an interrupted upload is remembered: in pages by default localStorage; null: nowhere. A file is recognized by its
     * name, size and modification time.
     */
    storage?: ResumeStorage | null;
    /** Identifies a stream, or a blob without a name, so that its upload can be resumed. */
    resumeKey?: string;
  };

export type UploadResult = { upload_id: number; asset_id: number };

/** Uploads all bytes of `source` in chunks. Resumes an upload that `storage` remembers. */
export async function uploadSource(
  client: ClientOptions,
  source: Source,
  options: UploadOptions,
): Promise<UploadResult> {
  try {
    const { storage = pageStorage(), signal } = options;
    const identity = options.resumeKey ?? source.identity;
    const key = identity === undefined ? null : `vodbox:${baseUrlOf(client)}:${identity}`;
    const memory = key !== null && storage ? { key, storage } : null;
    const earlier = memory && (await remembered(client, memory.storage, memory.key, source, signal));
    const upload = earlier ?? (await createUpload(client, source.size, metadataOf(source, options), signal));
    if (memory && !earlier) await memory.storage.set(memory.key, String(upload.uploadId));
    try {
      await sendAll(tusTarget(client, upload.uploadId), source, upload.offset, options);
    } catch (error) {
      if (memory && hasEnded(error)) await memory.storage.remove(memory.key);
      throw error;
    }
    await memory?.storage.remove(memory.key);
    return { upload_id: upload.uploadId, asset_id: upload.assetId };
  } finally {
    await source.close?.();
  }
}

const hasEnded = (error: unknown) => error instanceof VodboxError && (error.status === 404 || error.status === 410);

/** The upload that an earlier call has begun; null when there is none that can be continued. */
async function remembered(
  client: ClientOptions,
  storage: ResumeStorage,
  key: string,
  source: Source,
  signal?: AbortSignal,
): Promise<TusUpload | null> {
  const id = Number(await storage.get(key));
  if (!Number.isSafeInteger(id) || id < 1) return null;
  try {
    const upload = await findUpload(client, id, signal);
    return upload.length === source.size ? upload : null;
  } catch (error) {
    if (hasEnded(error)) return null;
    throw error;
  }
}

function metadataOf(source: Source, options: UploadOptions): Record<string, string> {
  const { onProgress, signal, storage, resumeKey, maxRetries, content_type, ...fields } = options;
  const values = {
    ...fields,
    filename: fields.filename ?? source.filename,
    filetype: content_type ?? (source.type || undefined),
    captions: fields.captions?.join(","),
  };
  return Object.fromEntries(
    Object.entries(values)
      .filter(([, value]) => value !== undefined && value !== null && value !== "")
      .map(([name, value]) => [name, String(value)]),
  );
}
