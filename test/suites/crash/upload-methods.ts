import { createHash } from "node:crypto";
import { client } from "#test/support/client.ts";
import type { Random } from "#test/support/crash/random.ts";

export const md5 = (bytes: Uint8Array) => `"${createHash("md5").update(bytes).digest("hex")}"`;

/** A client that queries the offset before every step, as one does that may have been interrupted. */
export type Client = { base: string; key: string; random: Random };
export type Source = { name: string; bytes: Uint8Array<ArrayBuffer>; id?: number; url?: string };
type Way = {
  /** Size from which resuming is useful. */
  bytes(random: Random): number;
  begin(client: Client, source: Source): Promise<void>;
  /** True when the upload is complete. */
  step(client: Client, source: Source): Promise<boolean>;
};

const ask = async (
  { base, key }: Client,
  method: string,
  path: string,
  options: Parameters<ReturnType<typeof client>>[2] = {},
) => {
  const answer = await client(base)(method, path, { key, ...options });
  if (answer.status >= 400) throw new Error(`${method} ${path}: ${answer.status} ${answer.text}`);
  return answer;
};
const initiate = async (c: Client, way: string, source: Source) => {
  const body = { filename: `${source.name}.mp4`, bytes_expected: source.bytes.length };
  const headers = { "idempotency-key": source.name };
  source.id = (await ask(c, "POST", `/api/v1/uploads/${way}`, { body, headers })).body.id;
};
const stateOf = async (c: Client, { id }: Source) => (await ask(c, "GET", `/api/v1/uploads/${id}`)).body;
/** Sometimes several concurrently, like clients after a timeout. */
async function end(c: Client, action: string, body: unknown): Promise<true> {
  const at = () => ask(c, "POST", action, { body });
  const answers = await Promise.all(c.random.chance(0.3) ? [at(), at(), at()] : [at()]);
  if (new Set(answers.map(({ text }) => text)).size > 1) throw new Error("Two answers to one complete");
  return true;
}

const PART = 16 * 2 ** 20;

export const ways: Record<"multipart" | "chunks" | "tus", Way> = {
  multipart: {
    bytes: (random) => PART + random.whole(1, 400_000),
    begin: (c, source) => initiate(c, "initiate_multipart", source),
    async step(c, source) {
      const { status, parts = [], part_count } = await stateOf(c, source);
      if (status === "completed") return true;
      const contentOf = (number: number) => source.bytes.subarray((number - 1) * PART, number * PART);
      for (const { part_number, etag } of parts)
        if (etag !== md5(contentOf(part_number)))
          throw new Error(`Part ${part_number} is held and is not what was sent`);
      const missing = Array.from({ length: part_count }, (_, at) => at + 1).filter(
        (number) => !parts.some((part: { part_number: number }) => part.part_number === number),
      );
      if (missing.length === 0) {
        const named = parts.map(({ part_number, etag }: { part_number: number; etag: string }) => ({
          part_number,
          etag,
        }));
        const body = { parts: named, bytes_received: source.bytes.length };
        return end(c, `/api/v1/uploads/${source.id}/complete_multipart`, body);
      }
      // The large one first, which takes long enough to be interrupted.
      const number = missing[0] as number;
      const { body: signed } = await ask(c, "POST", `/api/v1/uploads/${source.id}/sign_part`, {
        body: { part_number: number },
      });
      await ask(c, "PUT", signed.url, { raw: contentOf(number) });
      return false;
    },
  },
  chunks: {
    bytes: (random) => random.whole(100_000, 3_000_000),
    begin: (c, source) => initiate(c, "initiate", source),
    async step(c, source) {
      const { status, upload_url: url } = await stateOf(c, source);
      if (status === "completed") return true;
      const total = source.bytes.length;
      const asked = await ask(c, "PUT", url, { headers: { "content-range": `bytes */${total}` } });
      if (asked.status === 200) return end(c, `/api/v1/uploads/${source.id}/complete`, { bytes_received: total });
      const held = Number(/-(\d+)$/.exec(asked.headers.get("range") ?? "-")?.[1] ?? -1) + 1;
      // Sometimes from before the offset, like a client that did not query it.
      const start = c.random.chance(0.2) ? c.random.whole(0, held) : held;
      const stop = Math.min(total, start + c.random.whole(1, total));
      const headers = { "content-range": `bytes ${start}-${stop - 1}/${total}` };
      await ask(c, "PUT", url, { headers, raw: source.bytes.subarray(start, stop) });
      return false;
    },
  },
  tus: {
    bytes: (random) => random.whole(100_000, 3_000_000),
    async begin(c, source) {
      const headers = { "tus-resumable": "1.0.0", "upload-length": String(source.bytes.length) };
      const { headers: answer } = await ask(c, "POST", "/api/v1/uploads/tus", { headers });
      source.id = Number(answer.get("location")?.split("/").at(-1));
    },
    async step(c, source) {
      const at = `/api/v1/uploads/tus/${source.id}`;
      const { headers: head } = await ask(c, "HEAD", at, { headers: { "tus-resumable": "1.0.0" } });
      const offset = Number(head.get("upload-offset"));
      const total = source.bytes.length;
      if (offset === total) return true;
      const piece = source.bytes.subarray(offset, Math.min(total, offset + c.random.whole(1, total)));
      const headers: Record<string, string> = {
        "tus-resumable": "1.0.0",
        "content-type": "application/offset+octet-stream",
        "upload-offset": String(offset),
      };
      if (c.random.chance(0.3))
        headers["upload-checksum"] = `sha1 ${createHash("sha1").update(piece).digest("base64")}`;
      await ask(c, "PATCH", at, { headers, raw: piece });
      return false;
    },
  },
};
