import { and, eq } from "drizzle-orm";
import { canonicalLanguage } from "#lib/base";
import type { Db } from "#storage/db/open.ts";
import { assets, liveStreams, uploads } from "#storage/db/schema.ts";
import { canonicalCaptions } from "../subtitles/caption-request.ts";

/**
 * Languages to transcribe the audio into, canonical and unique, whether the job fails without one of them, and names of some of
 * them.
 */
export type WantedCaptions = { languages: string[]; required: boolean; labels: ReadonlyMap<string, string> };
const NO_LABELS: ReadonlyMap<string, string> = new Map();
export const NO_CAPTIONS: WantedCaptions = { languages: [], required: false, labels: NO_LABELS };

export type SourceUpload = { contentType: string; captions: WantedCaptions };

/** Metadata from the upload of an asset's source; null when it arrived differently. */
export async function sourceUpload(db: Db, assetId: number): Promise<SourceUpload | null> {
  const upload = await db
    .select({
      contentType: uploads.contentType,
      captions: uploads.captions,
      required: uploads.captionsRequired,
      labels: uploads.captionLabels,
    })
    .from(uploads)
    .innerJoin(assets, and(eq(assets.id, uploads.assetId), eq(assets.sourceKey, uploads.objectKey)))
    .where(eq(uploads.assetId, assetId))
    .get();
  if (!upload) return null;
  const languages = canonicalCaptions(upload.captions);
  const labels = new Map(Object.entries(upload.labels).map(([tag, label]) => [canonicalLanguage(tag) ?? tag, label]));
  return { contentType: upload.contentType, captions: { languages, required: upload.required, labels } };
}

/**
 * The captions that a job of an asset creates: those of its upload, or of the live channel that it is a recording of. A
 * recording plays already, so none of its captions is required.
 */
export async function wantedCaptions(
  db: Db,
  assetId: number,
  upload?: Pick<SourceUpload, "captions"> | null,
): Promise<WantedCaptions> {
  const known = upload === undefined ? await sourceUpload(db, assetId) : upload;
  if (known) return known.captions;
  const isRecording = eq(liveStreams.assetId, assetId);
  const stream = await db.select({ captions: liveStreams.captions }).from(liveStreams).where(isRecording).get();
  return stream ? { languages: stream.captions, required: false, labels: NO_LABELS } : NO_CAPTIONS;
}
