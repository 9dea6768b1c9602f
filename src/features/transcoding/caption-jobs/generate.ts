import { eq } from "drizzle-orm";
import type { App } from "#app.ts";
import { addPending, cancelGeneration } from "#features/subtitles/pending.ts";
import { subtitlesOf } from "#features/subtitles/queries.ts";
import { requireRoom } from "#features/subtitles/room.ts";
import { translatedLabel } from "#features/subtitles/translate.ts";
import { requireTenant } from "#features/tenants/queries.ts";
import { requireMinutes } from "#features/tenants/quota.ts";
import { HttpError, invalid, ownName } from "#lib/base";
import { hasAudioCodec } from "#lib/codecs";
import { isAudioName } from "#protocol/audio-renditions.ts";
import { afterCommit } from "#storage/db/after-commit.ts";
import type { Db } from "#storage/db/open.ts";
import {
  type AssetRow,
  type CaptionJobRow,
  type CaptionTranslation,
  captionJobs,
  type SubtitleRow,
} from "#storage/db/schema.ts";
import { partFault } from "../joined-part.ts";
import { workerWaker } from "../wake.ts";
import { UNDETERMINED } from "./complete.ts";
import { captionPositionFor } from "./queue.ts";

export type Generation = {
  /** A canonical BCP 47 tag; null: it is detected. */
  language: string | null;
  /** Canonical, unique tags. */
  translateTo: readonly string[];
  /** Default: the language's own name. */
  label?: string;
  /** The id of the transcoding job that shows why they are missing. */
  requestedBy?: number;
};
export type Generated = { job: CaptionJobRow; subtitle: SubtitleRow };

/**
 * Throws unless the speech of an asset can be recognized: 422 `asset_not_ready`, 409 `asset_conflict` for media that are not
 * stored here, 422 `no_audio`.
 */
export function requireSpeech(asset: AssetRow): void {
  const fault = partFault(asset);
  if (fault?.code === "asset_not_ready") throw new HttpError(422, "asset_not_ready", fault.message);
  if (fault) throw new HttpError(409, "asset_conflict", "The media of the asset are not stored here.");
  if (!hasAudio(asset)) throw new HttpError(422, "no_audio", "The asset has no audio.");
}

/** What a client delivered may have any names and no codecs; its worker looks. */
function hasAudio({ renditions, audioRenditions }: AssetRow): boolean {
  const all = [...renditions, ...audioRenditions];
  return all.length === 0 || all.some(({ name, codecs }) => isAudioName(name) || hasAudioCodec(codecs));
}

/**
 * Queues the recognition of an asset's speech, in the caller's transaction in which `asset` was read: its subtitle is pending
 * until then, and replaces a generated or translated one of the language. Repeating an unfinished request with the same
 * translations returns its job; another one takes its place. The caller has checked `requireTranscription`. Throws as
 * `requireSpeech`, 422 `language_taken` for an uploaded subtitle of the language, `subtitle_limit_reached`, 403
 * `quota_exceeded`.
 */
export async function generateCaptions(
  tx: Db,
  app: App,
  asset: AssetRow,
  { language, translateTo, label, requestedBy }: Generation,
): Promise<Generated> {
  requireSpeech(asset);
  await requireMinutes(tx, app, await requireTenant(tx, { kind: "admin" }, asset.tenantId));
  const tag = language ?? UNDETERMINED;
  const existing = (await subtitlesOf(tx, asset.id)).find((track) => track.language === tag);
  if (existing?.source === "upload")
    invalid("language", `the asset has an uploaded subtitle in ${tag}; delete it first`, "language_taken");
  const earlier = existing && (await jobOf(tx, existing));
  if (existing?.status === "pending" && earlier && isSame(earlier, { language, translateTo }))
    return { job: earlier, subtitle: existing };
  if (existing) await cancelGeneration(tx, app, existing);
  const fields = { language: tag, label: label ?? ownName(tag), source: "auto" } as const;
  const subtitle = await addPending(tx, app, asset, fields);
  const translations: CaptionTranslation[] = [];
  for (const target of translateTo) translations.push(await waiting(tx, app, asset, target));
  const now = app.clock.now();
  const job = await tx
    .insert(captionJobs)
    .values({
      tenantId: asset.tenantId,
      assetId: asset.id,
      subtitleId: subtitle.id,
      transcodingJobId: requestedBy ?? null,
      status: "queued",
      language,
      translations,
      queuePosition: await captionPositionFor(tx, asset.tenantId),
      availableAt: now,
      createdAt: now,
      updatedAt: now,
    })
    .returning()
    .get();
  afterCommit(tx, workerWaker(app));
  return { job, subtitle };
}

const jobOf = (tx: Db, { id }: SubtitleRow): Promise<CaptionJobRow | undefined> =>
  tx.select().from(captionJobs).where(eq(captionJobs.subtitleId, id)).get();

const isSame = (job: CaptionJobRow, { language, translateTo }: Generation): boolean =>
  (job.status === "queued" || job.status === "running") &&
  job.language === language &&
  job.translations.map((one) => one.language).join() === translateTo.join();

/** A language without a track gets a pending one; another track is replaced when the translation is there. */
async function waiting(tx: Db, app: App, asset: AssetRow, language: string): Promise<CaptionTranslation> {
  const tracks = await subtitlesOf(tx, asset.id);
  requireRoom(tracks, language);
  const label = translatedLabel(ownName(language));
  const exists = tracks.some((track) => track.language === language && track.status !== "failed");
  const row = exists ? null : await addPending(tx, app, asset, { language, label, source: "translation" });
  return { language, subtitle_id: row?.id ?? null, status: "pending", error: null, attempts: 0 };
}
