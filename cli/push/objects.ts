import { join } from "node:path";
import type { EncodedMedia } from "./encode-file.ts";
import { put, RequestRefused } from "./http.ts";
import { allOrFirstError, counted, type Sender } from "./send.ts";
import type { File } from "./state.ts";

/** One file here, one object of a batch there. */
export type BatchObject = { key: string; path: string; bytes: number };
type Intent = {
  id: number;
  object_key: string;
  status: "pending" | "completed" | "aborted";
  mode: "put" | "multipart" | "proxy";
  bytes_expected: number;
  part_size: number | null;
  part_count: number | null;
  parts?: { part_number: number; bytes: number; etag: string }[];
  upload_url?: string;
  upload_headers?: Record<string, string>;
};

/** Beyond this an object goes in parts, and what is interrupted costs a part. */
const SINGLE_BYTES = 16 * 2 ** 20;
export const MEDIA = "media/";
const SOURCE = "source/original";

/** The media, and the source where it is wanted. */
export function objectsOf(made: EncodedMedia, folder: string, source: File | null): BatchObject[] {
  const media = made.files.map(({ name, bytes }) => ({ key: MEDIA + name, path: join(folder, "out", name), bytes }));
  return source ? [...media, { key: sourceKey(source), path: source.path, bytes: source.bytes }] : media;
}

/** Its name is for people, and may be longer than a key's part. */
export const sourceKey = ({ path }: File) => SOURCE + (/\.[A-Za-z0-9]{1,8}$/.exec(path)?.[0].toLowerCase() ?? "");

/** Brings to a batch what it does not hold yet, several at once. */
export async function sendObjects(sender: Sender, batchId: number, objects: readonly BatchObject[]): Promise<void> {
  const { patience, call, meter } = sender;
  for (const { bytes } of objects) meter.expect(bytes);
  const base = `/ingest_batches/${batchId}/uploads`;
  const listed = await patience.until(() => call.all<Intent>(base));
  const held = new Map(listed.filter(({ status }) => status !== "aborted").map((one) => [one.object_key, one]));
  await allOrFirstError(
    objects.map((object) => async (goOn) => {
      const before = held.get(object.key);
      const isSame = before?.bytes_expected === object.bytes;
      if (isSame && before.status === "completed") return meter.sent(object.bytes);
      if (object.bytes > SINGLE_BYTES) return sendParts(sender, base, { object, goOn });
      return sender.slot(() => {
        goOn();
        return sendWhole(sender, base, { object, before: isSame ? before : undefined });
      });
    }),
  );
}

const wanted = ({ key, bytes }: BatchObject, mode: Intent["mode"]) => ({
  object_key: key,
  bytes_expected: bytes,
  content_type: typeOf(key),
  mode,
});

async function sendWhole(
  { call, patience, meter }: Sender,
  base: string,
  { object, before }: { object: BatchObject; before: Intent | undefined },
): Promise<void> {
  const { path, bytes } = object;
  const complete = (id: number) =>
    patience.until(() => call("POST", `${base}/${id}/complete`, { bytes_received: bytes }));
  if (before) {
    // An earlier run may have ended between the last byte and its confirmation.
    const isThere = await complete(before.id).then(
      () => true,
      (error) => {
        if (error instanceof RequestRefused && error.status === 422) return false;
        throw error;
      },
    );
    if (isThere) return meter.sent(bytes);
  }
  const id = await patience.until(async () => {
    // Asked again it gives a fresh address of the same upload.
    const intent = await call<Intent>("POST", base, wanted(object, "put"));
    if (intent.status === "completed") meter.sent(bytes);
    else {
      const { upload_url: url = "", upload_headers: headers = {} } = intent;
      await counted(meter, (onSent) => put({ url, headers, path, start: 0, bytes, onSent }));
    }
    return intent.id;
  });
  await complete(id);
}

async function sendParts(
  sender: Sender,
  base: string,
  { object, goOn }: { object: BatchObject; goOn: () => void },
): Promise<void> {
  const { call, patience, meter, slot } = sender;
  const { path, bytes: all } = object;
  const intent = await patience.until(() => call<Intent>("POST", base, wanted(object, "multipart")));
  if (intent.status === "completed") return meter.sent(all);
  const size = intent.part_size ?? all;
  const held = new Map((intent.parts ?? []).map((part) => [part.part_number, part.bytes]));
  const parts = `${base}/${intent.id}/parts`;
  await allOrFirstError(
    Array.from({ length: intent.part_count ?? 1 }, (_, at) => async () => {
      const start = at * size;
      const bytes = Math.min(size, all - start);
      if (held.get(at + 1) === bytes) return meter.sent(bytes);
      return slot(async () => {
        goOn();
        const etag = await patience.until(async () => {
          const signed = await call<{ url: string; headers: Record<string, string> }>("POST", parts, {
            part_number: at + 1,
          });
          return counted(meter, (onSent) => put({ ...signed, path, start, bytes, onSent }));
        });
        await patience.until(() => call("POST", `${parts}/${at + 1}/complete`, { etag }));
      });
    }),
  );
  await patience.until(() => call("POST", `${base}/${intent.id}/complete`, { bytes_received: all }));
}

const CONTENT_TYPES: Record<string, string> = {
  m3u8: "application/vnd.apple.mpegurl",
  mpd: "application/dash+xml",
  m4s: "video/iso.segment",
  mp4: "video/mp4",
  jpg: "image/jpeg",
  vtt: "text/vtt",
};
const typeOf = (key: string) => CONTENT_TYPES[key.slice(key.lastIndexOf(".") + 1)] ?? "application/octet-stream";
