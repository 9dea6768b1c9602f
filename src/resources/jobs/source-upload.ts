import { and, eq } from "drizzle-orm";
import type { Db } from "../../../storage/db/open.ts";
import { assets, uploads } from "../../../storage/db/schema.ts";
import { canonicalLanguage } from "../../lib/language.ts";

/** Languages to transcribe the audio into, canonical and unique, and whether the job fails without one of them. */
export type WantedCaptions = { languages: string[]; required: boolean };
export const NO_CAPTIONS: WantedCaptions = { languages: [], required: false };

export type SourceUpload = { contentType: string; captions: WantedCaptions };

/** Metadata from the upload of an asset's source; null when it arrived differently. */
export async function sourceUpload(db: Db, assetId: number): Promise<SourceUpload | null> {
  const upload = await db
    .select({ contentType: uploads.contentType, captions: uploads.captions, required: uploads.captionsRequired })
    .from(uploads)
    .innerJoin(assets, and(eq(assets.id, uploads.assetId), eq(assets.sourceKey, uploads.objectKey)))
    .where(eq(uploads.assetId, assetId))
    .get();
  if (!upload) return null;
  // Rows from before tags were validated may contain some that are not languages.
  const languages = upload.captions.map(canonicalLanguage).filter((language) => language !== null);
  return {
    contentType: upload.contentType,
    captions: { languages: [...new Set(languages)], required: upload.required },
  };
}
