import { eq } from "drizzle-orm";
import type { App } from "#app.ts";
import { assetPrefix, newSubtitleKey } from "#model/object-keys.ts";
import type { Db } from "#storage/db/open.ts";
import { type AssetRow, captionJobs, type SubtitleRow, subtitles } from "#storage/db/schema.ts";
import { emitSubtitle, emitSubtitleErrored } from "./events.ts";
import { subtitlesOf } from "./queries.ts";
import { requireRoom } from "./room.ts";

type PendingSubtitle = Pick<SubtitleRow, "language" | "label" | "source">;

/**
 * A track whose text is being created: inserted, or an existing one of the language, which keeps its text until there is another
 * one, but is not delivered meanwhile. Throws 422 `subtitle_limit_reached`.
 */
export async function addPending(
  tx: Db,
  app: App,
  asset: AssetRow,
  { language, label, source }: PendingSubtitle,
): Promise<SubtitleRow> {
  const tracks = await subtitlesOf(tx, asset.id);
  const existing = tracks.find((track) => track.language === language);
  requireRoom(tracks, language);
  const now = app.clock.now();
  const pending = { source, status: "pending", errorCode: null, errorMessage: null, updatedAt: now } as const;
  if (existing) return tx.update(subtitles).set(pending).where(eq(subtitles.id, existing.id)).returning().get();
  const last = tracks.reduce((most, { position }) => Math.max(most, position + 1), 0);
  const added = await tx
    .insert(subtitles)
    .values({
      ...pending,
      tenantId: asset.tenantId,
      assetId: asset.id,
      language,
      label,
      position: last,
      objectKey: newSubtitleKey(assetPrefix(asset)),
      bytes: 0,
      warnings: [],
      createdAt: now,
    })
    .returning()
    .get();
  await emitSubtitle(tx, app, "video.subtitle.created", added);
  return added;
}

/** A pending track gets no text: it has failed, or it has the earlier text again, and says why in both cases. */
export async function failPending(
  tx: Db,
  app: App,
  row: SubtitleRow,
  error: { code: string; message: string },
): Promise<void> {
  const status = row.bytes > 0 ? ("ready" as const) : ("failed" as const);
  await tx
    .update(subtitles)
    .set({ status, errorCode: error.code, errorMessage: error.message, updatedAt: app.clock.now() })
    .where(eq(subtitles.id, row.id));
  await emitSubtitleErrored(tx, app, row, error);
}

const CANCELED = { code: "canceled", message: "The captions that were to be translated were deleted or replaced." };

/**
 * Cancels what is being generated for a track: its job is deleted, so that the worker's lease ends, and what waits for a
 * translation of it has failed. With `ofUnfinished` a job stays whose text is there and that is being translated.
 */
export async function cancelGeneration(
  tx: Db,
  app: App,
  { id }: Pick<SubtitleRow, "id">,
  { ofUnfinished = false } = {},
): Promise<void> {
  const job = await tx.select().from(captionJobs).where(eq(captionJobs.subtitleId, id)).get();
  if (!job || (ofUnfinished && (job.status === "completed" || job.status === "failed"))) return;
  await tx.delete(captionJobs).where(eq(captionJobs.id, job.id));
  for (const { subtitle_id: waiting, status } of job.translations)
    if (status === "pending") await failWaiting(tx, app, waiting, CANCELED);
}

/** The same as `failPending` for the track of a translation, if it still waits. */
export async function failWaiting(
  tx: Db,
  app: App,
  id: number | null,
  error: { code: string; message: string },
): Promise<void> {
  if (id === null) return;
  const row = await tx.select().from(subtitles).where(eq(subtitles.id, id)).get();
  if (row?.status === "pending") await failPending(tx, app, row, error);
}
