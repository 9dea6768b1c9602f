import { eq } from "drizzle-orm";
import type * as v from "valibot";
import type { Db } from "../../../storage/db/open.ts";
import { type AssetRow, type JobRow, transcodingJobs } from "../../../storage/db/schema.ts";
import type { ObjectStore } from "../../../storage/objects/store.ts";
import type { App } from "../../app.ts";
import { scheduleDeletion } from "../../http/object-gc.ts";
import { HttpError } from "../../lib/errors.ts";
import { canonicalLanguage, ownName } from "../../lib/language.ts";
import { decodeText } from "../../lib/vtt/decode.ts";
import { checkedVtt, MAX_SUBTITLE_BYTES } from "../subtitles/content.ts";
import { subtitlesOf } from "../subtitles/queries.ts";
import { addSubtitle, hasRoom, type StoredText, storeText } from "../subtitles/store.ts";
import type { Completion } from "./schema.ts";
import type { WantedCaptions } from "./source-upload.ts";

type Result = Pick<v.InferOutput<typeof Completion>, "subtitle_paths" | "caption_errors">;
const REFUSED = new Set(["invalid_subtitle", "document_too_complex"]);
type Caption = { language: string; stored: StoredText };

export type Captions = {
  made: Caption[];
  errors: Map<string, string>;
  /** Where the worker put them. Served there, they would outlive the tracks that are made of them. */
  paths: string[];
};

/** 422 that names the field of a completion. */
export const incomplete = (field: string, message: string): never => {
  throw new HttpError(422, "invalid_transcoding_result", `${field}: ${message}`, { details: { [field]: [message] } });
};

/**
 * What a worker made of the captions that were wanted, and of others, as texts in storage that no row names yet. Paths
 * are known to lie under the attempt's prefix. 422 `invalid_transcoding_result` for what is missing or no WebVTT.
 */
export async function readCaptions(
  app: App,
  objects: ObjectStore,
  { job, wanted, result }: { job: JobRow; wanted: WantedCaptions; result: Result },
): Promise<Captions> {
  const paths = byLanguage("subtitle_paths", result.subtitle_paths);
  const errors = byLanguage("caption_errors", result.caption_errors);
  for (const language of wanted.languages) {
    if (paths.has(language)) continue;
    if (!errors.has(language))
      incomplete(`subtitle_paths.${language}`, "is required, unless caption_errors tells why it cannot be made");
    if (wanted.required)
      incomplete(`caption_errors.${language}`, "the captions are required; fail the job instead, as caption_failed");
  }
  const made: Caption[] = [];
  const owner = { id: job.assetId, tenantId: job.tenantId };
  for (const [language, path] of paths) {
    const text = await captionText(app, objects, `subtitle_paths.${language}`, { path, tenantId: job.tenantId });
    made.push({ language, stored: await storeText(app, owner, text) });
    errors.delete(language);
  }
  return { made, errors, paths: [...paths.values()] };
}

function byLanguage(field: string, given: Record<string, string>): Map<string, string> {
  const found = new Map<string, string>();
  for (const [tag, value] of Object.entries(given)) {
    const language = canonicalLanguage(tag) ?? incomplete(`${field}.${tag}`, "must be named by a BCP 47 language tag");
    if (found.has(language)) incomplete(`${field}.${tag}`, `${language} is given twice`);
    found.set(language, value);
  }
  return found;
}

async function captionText(
  app: App,
  objects: ObjectStore,
  field: string,
  { path, tenantId }: { path: string; tenantId: number },
): Promise<string> {
  const found = await objects.get(path);
  if (!found) return incomplete(field, "is not in storage");
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of found.body) {
    bytes += chunk.length;
    // Leaving the loop ends the stream.
    if (bytes > MAX_SUBTITLE_BYTES) return incomplete(field, `must have at most ${MAX_SUBTITLE_BYTES} bytes`);
    chunks.push(chunk);
  }
  const decoded = decodeText(Buffer.concat(chunks));
  if ("fault" in decoded) return incomplete(field, `cannot be read: ${decoded.fault}`);
  try {
    return await checkedVtt(app, field, decoded.text, { tenantId });
  } catch (error) {
    if (!(error instanceof HttpError) || !REFUSED.has(error.code)) throw error;
    const { message, extra } = error;
    throw new HttpError(422, "invalid_transcoding_result", message, extra);
  }
}

/**
 * In the transaction of the completion: tracks, their events, and on the job why others are missing. What a person
 * uploaded or had translated is left alone; an automatic track is written over in place.
 */
export async function publishCaptions(
  tx: Db,
  app: App,
  { job, asset, captions }: { job: JobRow; asset: AssetRow; captions: Captions },
): Promise<JobRow> {
  const { made, errors, paths } = captions;
  for (const { language, stored } of made) {
    const tracks = await subtitlesOf(tx, asset.id);
    const taken = tracks.find((track) => track.language === language);
    if (taken && taken.source !== "auto") continue;
    if (!hasRoom(tracks, language)) {
      errors.set(language, "The asset has as many subtitle tracks as it may have.");
      continue;
    }
    const last = tracks.reduce((most, { position }) => Math.max(most, position + 1), 0);
    const { label, position } = taken ?? { label: ownName(language), position: last };
    await addSubtitle(tx, app, asset, { language, label, source: "auto", position }, { stored, replace: true });
  }
  await scheduleDeletion(tx, app, paths);
  if (errors.size === 0) return job;
  return tx
    .update(transcodingJobs)
    .set({ captionErrors: Object.fromEntries(errors) })
    .where(eq(transcodingJobs.id, job.id))
    .returning()
    .get();
}
