import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import { stat } from "node:fs/promises";
import { basename } from "node:path";
import { pipeline } from "node:stream/promises";
import type { Asset } from "#features/assets/schema.ts";
import type { Warning } from "#model/warnings.ts";
import type { Complete, CompleteMultipart, SignedPart, SignPart, Upload } from "#protocol/upload.ts";
import { type Api, FileFault, put, RequestRefused } from "./http.ts";
import type { Meter } from "./progress-meter.ts";
import type { RetryPolicy } from "./retry-policy.ts";
import { type File, type State, stateOf } from "./state.ts";

export type FileSender = {
  server: string;
  call: Api;
  patience: RetryPolicy;
  /** Limits concurrent parts over all files to the user's number. */
  slot<T>(work: () => Promise<T>): Promise<T>;
  meter: Pick<Meter, "expect" | "sent">;
  /** Named in requests with the admin token. */
  tenantId: number | undefined;
  fields: Record<string, unknown>;
};
export type Sender = FileSender & { meter: Meter };
/** Where a run records what the next one needs to resume. */
export type SendState = { load(): State | null; save(state: State): State; begin(): State };
export type Pushed = { path: string; asset_id: number; external_id: string; bytes: number } & (
  | { upload_id: number; watch_url?: string | null; warnings?: Warning[]; encoding_status?: Asset["encoding_status"] }
  | { batch_id: number; encoded_bytes: number; watch_url: string | null; warnings: Warning[] }
);

/** Larger files are uploaded in parts; a smaller one would be a single part. */
const SINGLE_BYTES = 16 * 2 ** 20;

/** Throws FileFault unless it is a file with content. */
export async function fileAt(path: string): Promise<File> {
  const info = await stat(path).catch((error: NodeJS.ErrnoException) => {
    throw new FileFault(
      error.code === "ENOENT" ? `The file ${path} does not exist.` : `${path} cannot be read (${error.code}).`,
    );
  });
  if (!info.isFile()) throw new FileFault(`${path} is not a file; to push a directory use --watch ${path}.`);
  if (info.size === 0) throw new FileFault(`${path} is empty.`);
  return { path, bytes: info.size, modifiedMs: info.mtimeMs };
}

/** Uploads one file, resuming an earlier run, and records its completion in `state`. */
export async function sendFile(
  sender: FileSender,
  file: File,
  state: SendState = stateOf(file, sender.server),
): Promise<Pushed & { upload_id: number }> {
  const { patience, call } = sender;
  sender.meter.expect(file.bytes);
  const session = await sessionOf(sender, file, state);
  if (session.status === "pending") {
    const end =
      session.part_size === undefined ? await sendWhole(sender, file, session) : await sendParts(sender, file, session);
    await unchanged(file);
    await patience.until(() => call("POST", `/uploads/${session.id}/${end.action}`, end.body));
  } else sender.meter.sent(file.bytes);
  state.save({ attempt: "", uploadId: session.id, done: true });
  const { id, asset_id, external_id } = session;
  return { path: file.path, upload_id: id, asset_id, external_id, bytes: file.bytes };
}

/**
 * The session of an earlier run if it is still open, or was completed without our receiving the response; else a new
 * one.
 */
async function sessionOf({ call, patience, fields, tenantId }: FileSender, file: File, store: SendState) {
  let state: State | null = store.load();
  if (state?.done) state = null;
  const { uploadId } = state ?? {};
  if (uploadId !== undefined) {
    const upload = await patience
      .until(() => call<Upload>("GET", `/uploads/${uploadId}`))
      .catch((error) => {
        if (error instanceof RequestRefused && error.status === 404) return null;
        throw error;
      });
    if (upload?.status === "pending" || upload?.status === "completed") return upload;
    state = null;
  }
  state ??= store.begin();
  const { attempt } = state;
  const isSmall = file.bytes <= SINGLE_BYTES;
  const body = {
    filename: basename(file.path),
    bytes_expected: file.bytes,
    // Hashing would read a large file twice.
    ...(tenantId !== undefined && { tenant_id: tenantId }),
    ...(isSmall && { sha256: await sha256(file.path) }),
    early_playback: true,
    ...fields,
  };
  const way = isSmall ? "initiate" : "initiate_multipart";
  const initiate = (key: string) =>
    patience.until(() => call<Upload>("POST", `/uploads/${way}`, body, { headers: { "idempotency-key": key } }));
  const session = await initiate(attempt).catch((error) => {
    // Created with other options by a run whose response was lost.
    if (error instanceof RequestRefused && /Idempotency-Key/.test(error.message))
      return initiate(store.begin().attempt);
    throw error;
  });
  store.save({ attempt, uploadId: session.id });
  return session;
}

async function sendWhole(
  { patience, slot, meter }: FileSender,
  file: File,
  { upload_url = "", upload_headers = {} }: Upload,
) {
  await slot(() =>
    patience.until(() =>
      counted(meter, (onSent) =>
        put({ url: upload_url, headers: upload_headers, path: file.path, start: 0, bytes: file.bytes, onSent }),
      ),
    ),
  );
  const body: Complete = { bytes_received: file.bytes };
  return { action: "complete", body };
}

async function sendParts({ call, patience, slot, meter }: FileSender, file: File, session: Upload) {
  const size = session.part_size as number;
  const storedParts = new Map((session.parts ?? []).map((part) => [part.part_number, part]));
  const numbers = Array.from({ length: session.part_count ?? 0 }, (_, at) => at + 1);
  const parts = await allOrFirstError(
    numbers.map((number) => async (goOn) => {
      const start = (number - 1) * size;
      const bytes = Math.min(size, file.bytes - start);
      const there = storedParts.get(number);
      if (there?.bytes === bytes) {
        meter.sent(bytes);
        return { part_number: number, etag: there.etag };
      }
      const etag = await slot(() =>
        patience.until(async () => {
          goOn();
          const body: SignPart = { part_number: number };
          const { url, headers } = await call<SignedPart>("POST", `/uploads/${session.id}/sign_part`, body);
          return counted(meter, (onSent) => put({ url, headers, path: file.path, start, bytes, onSent }));
        }),
      );
      return { part_number: number, etag };
    }),
  );
  const body: CompleteMultipart = { parts, bytes_received: file.bytes };
  return { action: "complete_multipart", body };
}

/** Each work calls `goOn` when its slot is free: it throws after another has failed for good. */
export async function allOrFirstError<T>(works: ((goOn: () => void) => Promise<T>)[]): Promise<T[]> {
  let failure: unknown = null;
  const goOn = () => {
    if (failure) throw failure;
  };
  return Promise.all(
    works.map((work) =>
      work(goOn).catch((error) => {
        failure ??= error;
        throw error;
      }),
    ),
  );
}

/** Bytes of a failed attempt are subtracted from the progress. */
export async function counted<T>(
  meter: Pick<Meter, "sent">,
  work: (onSent: (bytes: number) => void) => Promise<T>,
): Promise<T> {
  let sent = 0;
  try {
    return await work((bytes) => {
      sent += bytes;
      meter.sent(bytes);
    });
  } catch (error) {
    meter.sent(-sent);
    throw error;
  }
}

/** Parts of two versions would not be a valid file. */
export async function unchanged(file: File): Promise<void> {
  const now = await fileAt(file.path);
  if (now.bytes !== file.bytes || now.modifiedMs !== file.modifiedMs)
    throw new FileFault(`${file.path} changed during the upload; push it again.`);
}

async function sha256(path: string): Promise<string> {
  const hash = createHash("sha256");
  await pipeline(createReadStream(path), hash);
  return hash.digest("hex");
}
