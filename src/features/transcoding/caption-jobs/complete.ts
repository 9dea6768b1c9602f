import { and, eq, ne } from "drizzle-orm";
import type { App } from "#app.ts";
import { changeSubtitle, emitSubtitleReady, removeSubtitle, type StoredText } from "#features/subtitles/store.ts";
import { requireTenant } from "#features/tenants/queries.ts";
import { addUsage } from "#features/tenants/usage.ts";
import { canonicalLanguage, ownName } from "#lib/base";
import { scheduleDeletion } from "#platform/http/object-gc.ts";
import type { SpeechResult } from "#protocol/speech.ts";
import { afterCommit } from "#storage/db/after-commit.ts";
import type { Db } from "#storage/db/open.ts";
import {
  type AssetRow,
  assets,
  type CaptionJobRow,
  captionJobs,
  type SubtitleRow,
  subtitles,
} from "#storage/db/schema.ts";
import { stale } from "../lease.ts";
import { failCaptions, NOT_RUNNING, removeParts, restartCaptions } from "./queue.ts";

/** The language of captions whose language nothing states. */
export const UNDETERMINED = "und";

/** What the worker of a job recognized, in storage. */
export type Recognized = { stored: StoredText; speech: SpeechResult };

/**
 * Publishes the captions of a job, whose lease was read in the same transaction: its subtitle is ready, and its translations
 * follow. In a detected language that another generated or translated track has, this one replaces it; an uploaded one stays,
 * and the job fails. Media that were changed meanwhile are recognized again.
 */
export async function completeCaptions(
  tx: Db,
  app: App,
  job: CaptionJobRow,
  { stored, speech }: Recognized,
): Promise<CaptionJobRow> {
  const asset = await tx.select().from(assets).where(eq(assets.id, job.assetId)).get();
  const subtitle = await tx.select().from(subtitles).where(eq(subtitles.id, job.subtitleId)).get();
  if (!asset || !subtitle) return stale();
  if (isChanged(asset, job)) return restartCaptions(tx, app, job);
  const tenant = await requireTenant(tx, { kind: "admin" }, asset.tenantId);
  const candidates = [speech.language, asset.tags.language, speech.audio_language, tenant.language];
  const language = languageFor(subtitle, job, candidates);
  const other = await otherTrack(tx, subtitle, language);
  if (other?.source === "upload") {
    const message = `The speech is in ${language}, in which the asset has an uploaded subtitle.`;
    return failCaptions(tx, app, job, { code: "language_taken", message });
  }
  const now = app.clock.now();
  const translations = job.translations.map((one) =>
    one.language === language ? { ...one, status: "skipped" as const } : one,
  );
  const isTranslated = translations.some(({ status }) => status === "pending");
  const completed = await tx
    .update(captionJobs)
    .set({
      ...NOT_RUNNING,
      status: "completed",
      translations,
      translateAt: isTranslated ? now : null,
      prefix: null,
      progress: 100,
      finishedAt: now,
      updatedAt: now,
    })
    .where(eq(captionJobs.id, job.id))
    .returning()
    .get();
  if (job.prefix !== null) await scheduleDeletion(tx, app, [job.prefix]);
  await removeParts(tx, job);
  if (other) await removeSubtitle(tx, app, other);
  const isRenamed = language !== subtitle.language;
  const place = other?.status === "ready" && { position: other.position, isDefault: other.isDefault };
  const label = other?.source === "auto" ? other.label : ownName(language);
  const { confidence } = speech;
  const fields = { source: "auto", confidence, ...(isRenamed && { language, label }), ...place } as const;
  await emitSubtitleReady(tx, app, await changeSubtitle(tx, app, subtitle, fields, stored));
  await addUsage(tx, job.tenantId, { transcodingMs: asset.durationSeconds * 1000 }, now);
  if (isTranslated) afterCommit(tx, () => void app.signals.emit("captions.recognized"));
  return completed;
}

/** Whether the asset plays other media than those that the job's worker reads. */
export const isChanged = ({ manifestPath }: AssetRow, job: CaptionJobRow): boolean => manifestPath !== job.manifestPath;

/** What was requested or, when it was to be detected, the first of the candidates that is a language. */
function languageFor(subtitle: SubtitleRow, { language }: CaptionJobRow, candidates: readonly unknown[]): string {
  // A person has labeled it meanwhile.
  if (language !== null || subtitle.language !== UNDETERMINED) return subtitle.language;
  for (const one of candidates) {
    const tag = typeof one === "string" ? canonicalLanguage(one) : null;
    if (tag !== null && tag !== UNDETERMINED) return tag;
  }
  return UNDETERMINED;
}

const otherTrack = (tx: Db, { id, assetId }: SubtitleRow, language: string): Promise<SubtitleRow | undefined> =>
  tx
    .select()
    .from(subtitles)
    .where(and(eq(subtitles.assetId, assetId), eq(subtitles.language, language), ne(subtitles.id, id)))
    .get();
