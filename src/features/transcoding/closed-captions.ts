import type { App } from "#app.ts";
import { canonicalLanguage, ownName } from "#lib/base";
import type { Warning } from "#model/warnings.ts";
import { scheduleDeletion } from "#platform/http/object-gc.ts";
import type { ClosedCaptions } from "#protocol/worker.ts";
import type { Db } from "#storage/db/open.ts";
import type { AssetRow, JobRow } from "#storage/db/schema.ts";
import type { ObjectStore } from "#storage/objects/store.ts";
import { trackOfService } from "../subtitles/caption-services.ts";
import { subtitlesOf } from "../subtitles/queries.ts";
import { hasRoom } from "../subtitles/room.ts";
import { addSubtitle, type StoredText, storeText } from "../subtitles/store.ts";
import { captionText } from "./captions.ts";
import { requireObjects } from "./verify-artifacts.ts";

/*
 * Closed captions in the video of a source become subtitles with its first encode. A later one would add those again that were
 * deleted, or have their real language by now; a recording of a live stream has them from its stream.
 */

type Place = { objects: ObjectStore; prefix: string; tenantId: number };
type Reported = ClosedCaptions | undefined;

/** Closed captions in storage, which no row references yet. */
export type StoredClosedCaptions = {
  tracks: { service: string; language: string | null; stored: StoredText }[];
  /** Objects of the worker, which are not served. */
  paths: string[];
  warning: Warning | null;
};

const UNREADABLE: Warning = {
  code: "closed_captions_unreadable",
  message: "The closed captions in the video could not be read. The asset plays without them.",
};

/** Whether a job is the first that encodes the source of the asset: what plays already may be a part of its result. */
export const wantsClosedCaptions = (
  { readyAt, encoding }: Pick<AssetRow, "readyAt" | "encoding">,
  { clip, joined }: Pick<JobRow, "clip" | "joined">,
): boolean => !clip && !joined && (readyAt === null || encoding !== null);

/** Throws 422 `invalid_transcoding_result` for an object that is not below the prefix, or not WebVTT. */
export async function checkClosedCaptions(
  app: App,
  place: Place,
  { tracks }: ClosedCaptions,
  each: (service: string, checked: Awaited<ReturnType<typeof captionText>>) => Promise<void> = async () => {},
): Promise<void> {
  const { objects, prefix, tenantId } = place;
  const named = Object.entries(tracks).map(
    ([service, { path }]) => [`closed_captions.tracks.${service}`, path] as const,
  );
  await requireObjects(objects, prefix, Object.fromEntries(named));
  for (const [service, { path }] of Object.entries(tracks))
    await each(service, await captionText(app, objects, `closed_captions.tracks.${service}`, { path, tenantId }));
}

/** Stores what a worker has reported; nothing of a job that is not asked for it. Throws as `checkClosedCaptions`. */
export async function storeClosedCaptions(
  app: App,
  place: Place,
  { job, reported = { tracks: {} } }: { job: JobRow; reported: Reported },
): Promise<StoredClosedCaptions> {
  const tracks: StoredClosedCaptions["tracks"] = [];
  const owner = { id: job.assetId, tenantId: job.tenantId };
  await checkClosedCaptions(app, place, reported, async (service, checked) => {
    const language = canonicalLanguage(reported.tracks[service]?.language ?? "");
    tracks.push({ service, language, stored: await storeText(app, owner, checked) });
  });
  tracks.sort((one, other) => (one.service < other.service ? -1 : 1));
  const paths = Object.values(reported.tracks).map(({ path }) => path);
  return { tracks, paths, warning: reported.failed ? UNREADABLE : null };
}

/** Inserts the tracks and their events in the transaction of the completion; existing ones are kept. */
export async function publishClosedCaptions(
  tx: Db,
  app: App,
  { asset, job }: { asset: AssetRow; job: JobRow },
  { tracks, paths }: StoredClosedCaptions,
): Promise<void> {
  await scheduleDeletion(tx, app, paths);
  if (!wantsClosedCaptions(asset, job)) return;
  for (const { service, language, stored } of tracks) {
    const existing = await subtitlesOf(tx, asset.id);
    const isFree = language !== null && existing.every((track) => track.language !== language);
    const track = isFree
      ? { language, label: ownName(language), source: "upload" as const }
      : trackOfService(service, existing);
    if (existing.some((one) => one.language === track.language) || !hasRoom(existing, track.language)) continue;
    const position = existing.reduce((most, one) => Math.max(most, one.position + 1), 0);
    await addSubtitle(tx, app, asset, { ...track, position }, { stored });
  }
}
