import type { App } from "#app.ts";
import { canonicalLanguage, ownName } from "#lib/base";
import type { SubtitleWarning } from "#lib/subtitles";
import type { Warning } from "#model/warnings.ts";
import { scheduleDeletion } from "#platform/http/object-gc.ts";
import type { ClosedCaptions } from "#protocol/source-texts.ts";
import { subtitleOfTrack } from "#protocol/text-tracks.ts";
import type { Db } from "#storage/db/open.ts";
import type { AssetRow, JobRow, SubtitleRow } from "#storage/db/schema.ts";
import type { ObjectStore } from "#storage/objects/store.ts";
import { trackOfService } from "../subtitles/caption-services.ts";
import { subtitlesOf } from "../subtitles/queries.ts";
import { hasRoom } from "../subtitles/room.ts";
import { addSubtitle, type StoredText, storeText } from "../subtitles/store.ts";
import { captionText } from "./captions.ts";
import { requireObjects } from "./verify-artifacts.ts";

/*
 * Texts of a source, which are closed captions in its video and text tracks, become subtitles with its first encode. A later one
 * would add those again that were deleted, or have their real language by now; a recording of a live stream has them from its
 * stream.
 */

type Place = { objects: ObjectStore; prefix: string; tenantId: number };
type Reported = ClosedCaptions["tracks"][string];

/** Texts in storage, which no row references yet. */
export type StoredSourceTexts = {
  texts: { name: string; reported: Omit<Reported, "path">; stored: StoredText }[];
  /** Objects of the worker, which are not served. */
  paths: string[];
  warnings: Warning[];
};

const UNREADABLE: Warning = {
  code: "closed_captions_unreadable",
  message: "The closed captions in the video could not be read. The asset plays without them.",
};

/** Whether a job is the first that encodes the source of the asset: what plays already may be a part of its result. */
export const wantsSourceTexts = (
  { readyAt, encoding }: Pick<AssetRow, "readyAt" | "encoding">,
  { clip, joined }: Pick<JobRow, "clip" | "joined">,
): boolean => !clip && !joined && (readyAt === null || encoding !== null);

/** Throws 422 `invalid_transcoding_result` for an object that is not below the prefix, or not WebVTT. */
export async function checkSourceTexts(
  app: App,
  place: Place,
  { tracks }: ClosedCaptions,
  each: (name: string, checked: Awaited<ReturnType<typeof captionText>>) => Promise<void> = async () => {},
): Promise<void> {
  const { objects, prefix, tenantId } = place;
  const named = Object.entries(tracks).map(([name, { path }]) => [`closed_captions.tracks.${name}`, path] as const);
  await requireObjects(objects, prefix, Object.fromEntries(named));
  for (const [name, { path }] of Object.entries(tracks))
    await each(name, await captionText(app, objects, `closed_captions.tracks.${name}`, { path, tenantId }));
}

/** Stores what a worker has reported; nothing of a job that is not asked for it. Throws as `checkSourceTexts`. */
export async function storeSourceTexts(
  app: App,
  place: Place,
  { job, reported = { tracks: {} } }: { job: JobRow; reported: ClosedCaptions | undefined },
): Promise<StoredSourceTexts> {
  const texts: StoredSourceTexts["texts"] = [];
  const owner = { id: job.assetId, tenantId: job.tenantId };
  await checkSourceTexts(app, place, reported, async (name, checked) => {
    const own = reported.tracks[name] as Reported;
    const warnings = [...checked.warnings, ...skippedCues(own.skipped_cues ?? 0)];
    texts.push({ name, reported: own, stored: await storeText(app, owner, { ...checked, warnings }) });
  });
  texts.sort((one, other) => rankOf(one.name).localeCompare(rankOf(other.name)));
  const paths = Object.values(reported.tracks).map(({ path }) => path);
  return { texts, paths, warnings: [...(reported.warnings ?? []), ...(reported.failed ? [UNREADABLE] : [])] };
}

/** Text tracks in the order of the source, which state more of themselves, and then closed captions. */
const rankOf = (name: string): string => {
  const number = /^track(\d+)$/.exec(name)?.[1];
  return number === undefined ? `1 ${name}` : `0 ${number.padStart(3, "0")}`;
};

function skippedCues(count: number): SubtitleWarning[] {
  if (count === 0) return [];
  const message = `${count} ${count === 1 ? "cue of the source was" : "cues of the source were"} left out: too long, or without an end.`;
  return [{ code: "cues_skipped", count, message }];
}

/** Inserts the subtitles and their events in the transaction of the completion; existing ones are kept. Returns what is left out. */
export async function publishSourceTexts(
  tx: Db,
  app: App,
  { asset, job }: { asset: AssetRow; job: JobRow },
  { texts, paths }: StoredSourceTexts,
): Promise<Warning[]> {
  await scheduleDeletion(tx, app, paths);
  if (!wantsSourceTexts(asset, job)) return [];
  const warnings: Warning[] = [];
  for (const { name, reported, stored } of texts) {
    const existing = await subtitlesOf(tx, asset.id);
    const track = subtitleOf(name, reported, existing);
    if (existing.some((one) => one.language === track.language)) continue;
    if (!hasRoom(existing, track.language)) {
      warnings.push(withoutRoom(track.label));
      continue;
    }
    const position = existing.reduce((most, one) => Math.max(most, one.position + 1), 0);
    const isDefault = reported.is_default === true && existing.every((one) => !one.isDefault);
    await addSubtitle(tx, app, asset, { ...track, position, isDefault }, { stored });
  }
  return warnings;
}

function subtitleOf(name: string, { language, label, kind }: Omit<Reported, "path">, existing: readonly SubtitleRow[]) {
  const source = "upload" as const;
  if (name.startsWith("track"))
    return { ...subtitleOfTrack({ name, language, label, kind: kind ?? "subtitles" }, existing), source };
  const stated = canonicalLanguage(language ?? "");
  const isFree = stated !== null && existing.every((track) => track.language !== stated);
  return isFree
    ? { language: stated, label: ownName(stated), source, role: "caption" as const }
    : trackOfService(name, existing);
}

const withoutRoom = (label: string): Warning => ({
  code: "track_skipped",
  message: `The subtitles "${label.slice(0, 60).toWellFormed()}" were left out: the asset has as many subtitles as it may have.`,
});
