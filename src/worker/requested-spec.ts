import { join } from "node:path";
import * as v from "valibot";
import { sha256 } from "#lib/base";
import { encodingSpec } from "#media/encoding-spec.ts";
import { MediaError } from "#media/error.ts";
import { writeResult } from "#media/results.ts";
import { EncodingSpec } from "#protocol/encoding-spec.ts";
import type { WorkerContract } from "#protocol/worker-client.ts";
import type { JobContext } from "./context.ts";

type Fields = Readonly<Record<string, unknown>>;
const isFields = (value: unknown): value is Fields =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** `given` with the worker's own values where it states none, as older servers do, on both levels. */
const completed = (given: Fields): Fields =>
  Object.fromEntries(
    Object.entries(encodingSpec as Fields).map(([name, own]) => {
      const value = given[name] ?? own;
      return [name, isFields(own) && isFields(value) ? { ...own, ...value } : value];
    }),
  );

/**
 * The specification that the job requires; the worker's own for a server that states none. Throws MediaError
 * `encode_failed` for one that this worker cannot obey: another worker, of another version, may.
 */
export function requestedSpec({ encoding_spec }: WorkerContract): EncodingSpec {
  if (!encoding_spec) return encodingSpec;
  const parsed = v.safeParse(EncodingSpec, completed(encoding_spec), { abortEarly: true });
  if (parsed.success) return parsed.output;
  const path = v.getDotPath(parsed.issues[0]) ?? "its form";
  throw new MediaError("encode_failed", `This worker does not support the encoding specification (${path}).`, true);
}

const MAX_BYTES = 2 ** 20;

/** Downloads the watermark of a specification into `work` and returns its path; undefined when there is none. */
export async function fetchWatermark(
  { video: { enabled, watermark } }: EncodingSpec,
  { client }: JobContext,
  { work, signal }: { work: string; signal: AbortSignal },
): Promise<string | undefined> {
  if (!enabled || !watermark) return undefined;
  const { url, sha256: expected } = watermark.image;
  const image = await client.download(url, { signal, maxBytes: MAX_BYTES });
  if (sha256(image) !== expected)
    throw new MediaError("encode_failed", "The watermark's image is not the expected one.", true);
  const path = join(work, "watermark.png");
  await writeResult(path, image);
  return path;
}
