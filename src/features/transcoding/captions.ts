import type * as v from "valibot";
import type { App } from "#app.ts";
import { canonicalLanguage, HttpError, ownName } from "#lib/base";
import { type CheckedText, decodeText } from "#lib/subtitles";
import { scheduleDeletion } from "#platform/http/object-gc.ts";
import { parseDocument } from "#platform/parsing/parse-document.ts";
import { MAX_WORDS_BYTES, wordsPathOf } from "#protocol/speech.ts";
import type { Completion } from "#protocol/worker.ts";
import type { Db } from "#storage/db/open.ts";
import type { AssetRow, JobRow } from "#storage/db/schema.ts";
import { readSmallObject } from "#storage/objects/small-objects.ts";
import { type ObjectStore, ObjectTooLarge } from "#storage/objects/store.ts";
import { checkedVtt, MAX_SUBTITLE_BYTES } from "../subtitles/content.ts";
import { subtitlesOf } from "../subtitles/queries.ts";
import { hasRoom } from "../subtitles/room.ts";
import { addSubtitle, type StoredText, storeText } from "../subtitles/store.ts";
import type { WantedCaptions } from "./source-upload.ts";

type Result = Pick<v.InferOutput<typeof Completion>, "subtitle_paths" | "caption_errors" | "separate_captions">;
const REFUSED = new Set(["invalid_subtitle", "document_too_complex"]);
/** `label`: undefined for the name of the language. */
type Caption = { language: string; label: string | undefined; stored: StoredText };

export type Captions = {
  made: Caption[];
  errors: Map<string, string>;
  /** Languages of captions that jobs of their own recognize. */
  separate: readonly string[];
  /** The worker's prefix for captions. They are not served from there, because they would outlive their tracks. */
  paths: string[];
};

/** Throws 422 with the name of a field of the completion. */
export const incomplete = (field: string, message: string): never => {
  throw new HttpError(422, "invalid_transcoding_result", `${field}: ${message}`, { details: { [field]: [message] } });
};

/**
 * Verifies the requested captions that a worker produced, as objects in storage that no row references yet. Paths are
 * known to be under the attempt's prefix. Throws 422 `invalid_transcoding_result` for a missing object or invalid
 * WebVTT.
 */
export async function readCaptions(app: App, objects: ObjectStore, reported: Reported): Promise<Captions> {
  const { job } = reported;
  const verified: Caption[] = [];
  const owner = { id: job.assetId, tenantId: job.tenantId };
  const { paths, errors, separate } = await checkCaptions(app, objects, reported, async (language, checked, path) => {
    const label = reported.wanted.labels.get(language);
    const words = await readWords(app, objects, { path: wordsPathOf(path), tenantId: job.tenantId });
    verified.push({ language, label, stored: { ...(await storeText(app, owner, checked)), words } });
  });
  return { made: verified, errors, separate, paths };
}

type Reported = { job: JobRow; wanted: WantedCaptions; result: Result };

/**
 * The same without storing anything. Calls `each` with the text of each caption, one after another. Returns the errors of
 * the others.
 */
export async function checkCaptions(
  app: App,
  objects: ObjectStore,
  { job, wanted, result }: Reported,
  each: (language: string, checked: CheckedText, path: string) => Promise<void> = async () => {},
): Promise<Pick<Captions, "errors" | "paths" | "separate">> {
  const paths = byLanguage("subtitle_paths", result.subtitle_paths);
  const errors = byLanguage("caption_errors", result.caption_errors);
  const separate: string[] = [];
  for (const language of wanted.languages) {
    if (paths.has(language)) continue;
    if (result.separate_captions && !wanted.required && !errors.has(language)) {
      separate.push(language);
      continue;
    }
    if (!errors.has(language))
      incomplete(`subtitle_paths.${language}`, "is required, unless caption_errors reports why it failed");
    if (wanted.required)
      incomplete(`caption_errors.${language}`, "these captions are required; fail the job with caption_failed instead");
  }
  for (const [language, path] of paths) {
    await each(
      language,
      await captionText(app, objects, `subtitle_paths.${language}`, { path, tenantId: job.tenantId }),
      path,
    );
    errors.delete(language);
  }
  return { errors, separate, paths: [...paths.values()].flatMap((path) => [path, wordsPathOf(path)]) };
}

function byLanguage(field: string, paths: Record<string, string>): Map<string, string> {
  const byTag = new Map<string, string>();
  for (const [tag, value] of Object.entries(paths)) {
    const language = canonicalLanguage(tag) ?? incomplete(`${field}.${tag}`, "must have BCP 47 language tags as keys");
    if (byTag.has(language)) incomplete(`${field}.${tag}`, `${language} appears twice`);
    byTag.set(language, value);
  }
  return byTag;
}

/** The checked text of a caption that a worker has written. Throws 422 `invalid_transcoding_result`. */
export async function captionText(
  app: App,
  objects: ObjectStore,
  field: string,
  { path, tenantId }: { path: string; tenantId: number },
): Promise<CheckedText> {
  const bytes = await readSmallObject(objects, path, { maxBytes: MAX_SUBTITLE_BYTES }).catch((error) => {
    if (!(error instanceof ObjectTooLarge)) throw error;
    return incomplete(field, `must have at most ${MAX_SUBTITLE_BYTES} bytes`);
  });
  if (!bytes) return incomplete(field, "does not exist in storage");
  const decoded = decodeText(bytes);
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
 * The times of words that a worker has written next to captions, deflated; null without them. The captions are complete without,
 * so malformed ones are only logged.
 */
export async function readWords(
  app: App,
  objects: ObjectStore,
  { path, tenantId }: { path: string; tenantId: number },
): Promise<Buffer | null> {
  const unusable = (reason: string) => {
    app.log.warn({ path, reason }, "the times of the words of captions cannot be used");
    return null;
  };
  try {
    const bytes = await readSmallObject(objects, path, { maxBytes: MAX_WORDS_BYTES });
    if (!bytes) return null;
    const { words, fault } = await parseDocument(app, "spokenWords", { bytes }, { tenantId });
    return words ? Buffer.from(words) : unusable(fault ?? "malformed");
  } catch (error) {
    const isTooMuch = error instanceof HttpError && error.code === "document_too_complex";
    if (error instanceof ObjectTooLarge || isTooMuch) return unusable((error as Error).message);
    throw error;
  }
}

/**
 * Inserts tracks and their events in the transaction of the completion. Tracks that a person uploaded or translated are
 * kept; an automatic track is replaced. Returns why others are missing, by language; null when none is.
 */
export async function publishCaptions(
  tx: Db,
  app: App,
  asset: AssetRow,
  { made, errors: reported, paths }: Captions,
): Promise<Record<string, string> | null> {
  const errors = new Map(reported);
  for (const { language, label: wanted, stored } of made) {
    const tracks = await subtitlesOf(tx, asset.id);
    const existing = tracks.find((track) => track.language === language);
    if (existing && existing.source !== "auto") continue;
    if (!hasRoom(tracks, language)) {
      errors.set(language, "The asset already has the maximum number of subtitles.");
      continue;
    }
    const last = tracks.reduce((most, { position }) => Math.max(most, position + 1), 0);
    const { label, position } = existing ?? { label: wanted ?? ownName(language), position: last };
    await addSubtitle(tx, app, asset, { language, label, source: "auto", position }, { stored, replace: true });
  }
  await scheduleDeletion(tx, app, paths);
  return errors.size === 0 ? null : Object.fromEntries(errors);
}
