import type { App } from "#app.ts";
import { HttpError } from "#lib/base";
import { JoinImpossible } from "#media/join/faults.ts";
import type { Db } from "#storage/db/open.ts";
import type { AddedAudioMedia, AssetRow, AudioTrackRow } from "#storage/db/schema.ts";
import type { ObjectStore } from "#storage/objects/store.ts";
import { MAX_TRACKS } from "../tracks/audio/add.ts";
import { copySourceTracks } from "../tracks/audio/source-tracks.ts";
import { addStoredTrack, isPlayed, rowsOf } from "../transcoding/added-audio/rows.ts";
import {
  MAX_SEGMENTS,
  type Stretch,
  segmentsOfStretches,
  spliceTrack,
  type TrackMedia,
} from "../transcoding/added-audio/splice.ts";

/** A part of a join: where it begins and ends in the joined media, in seconds. */
export type PlacedPart = { asset: AssetRow; from: number; to: number };

/** A track of the joined asset; `rows` are those of the parts, in their order, where they have it. */
type Group = { label: AudioTrackRow; isDefault: boolean; rows: (AudioTrackRow | null)[] };
/** The added tracks of a joined asset: their media are in storage, and no row references them yet. */
export type JoinedAudio = { tracks: (Group & TrackMedia & { bytes: number })[]; rows: Map<number, AudioTrackRow[]> };

type Options = { signal: AbortSignal; impossible: (reason: string) => never };

/**
 * Joins the added tracks of all parts: those of one language and role are one track, with silence where a part has none. It
 * begins and ends with the video of each part. Throws 422 `join_not_possible`.
 */
export async function joinAudio(
  app: App,
  objects: ObjectStore,
  parts: readonly PlacedPart[],
  { signal, impossible }: Options,
): Promise<JoinedAudio> {
  const rows = new Map<number, AudioTrackRow[]>();
  for (const { asset } of parts) if (!rows.has(asset.id)) rows.set(asset.id, await rowsOf(app.db, asset.id));
  requireEqualRemovals(rows, impossible);
  const groups = groupsOf(parts.map(({ asset }) => rows.get(asset.id) ?? []));
  if (groups.length > MAX_TRACKS) impossible(`they have over ${MAX_TRACKS} added audio tracks together`);
  const spliced = groups.map((group) => ({
    group,
    stretches: parts.map(({ from, to }, index): Stretch => ({ from, to, audio: audioOf(group.rows[index]) })),
  }));
  const count = spliced.reduce((sum, { stretches }) => sum + segmentsOfStretches(stretches), 0);
  if (count > MAX_SEGMENTS) impossible("their added audio tracks have too many segments");
  const [first] = parts as [PlacedPart];
  const { tenantId } = first.asset;
  const tracks: JoinedAudio["tracks"] = [];
  for (const { group, stretches } of spliced) {
    try {
      tracks.push({ ...group, ...(await spliceTrack(app, objects, { tenantId, stretches, signal })) });
    } catch (error) {
      if (!(error instanceof JoinImpossible)) throw error;
      throw new HttpError(422, error.code, error.message);
    }
  }
  return { tracks, rows };
}

const mediaOf = ({ media }: AudioTrackRow) => media as AddedAudioMedia;

function audioOf(row: AudioTrackRow | null | undefined): Stretch["audio"] {
  if (!row) return null;
  const media = mediaOf(row);
  return { prefix: row.prefix as string, media, start: media.startSeconds ?? 0 };
}

/** The joined media have all tracks of the sources: one that was removed from some parts only would be heard again in these. */
function requireEqualRemovals(
  rows: ReadonlyMap<number, readonly AudioTrackRow[]>,
  impossible: Options["impossible"],
): void {
  const removedOf = (all: readonly AudioTrackRow[]) =>
    new Map(all.flatMap((row) => (row.isRemoved && row.rendition !== null ? [[row.rendition, row.name]] : [])));
  const removed = [...rows].map(([id, all]) => ({ id, names: removedOf(all) }));
  for (const { id, names } of removed)
    for (const [rendition, name] of names) {
      const other = removed.find((one) => !one.names.has(rendition));
      if (other) impossible(`the audio track ${name} was removed from asset ${id}, but not from asset ${other.id}`);
    }
}

/**
 * Tracks of one language and role are one. Where a part has several of these, equal names decide first, then their order. They
 * have the name of the first part that has them; players begin with the track that they begin with in the first part, if all parts
 * have it.
 */
function groupsOf(parts: readonly (readonly AudioTrackRow[])[]): Group[] {
  const groups: Group[] = [];
  for (const [index, rows] of parts.entries()) {
    const isFree = (group: Group) => group.rows[index] === undefined;
    const isLike = ({ label }: Group, { language, role }: AudioTrackRow) =>
      label.language === language && label.role === role;
    const played = rows.filter(isPlayed);
    const named = new Set<AudioTrackRow>();
    for (const row of played) {
      const group = groups.find((one) => isFree(one) && isLike(one, row) && one.label.name === row.name);
      if (!group) continue;
      group.rows[index] = row;
      named.add(row);
    }
    for (const row of played) {
      if (named.has(row)) continue;
      const group = groups.find((one) => isFree(one) && isLike(one, row));
      if (group) group.rows[index] = row;
      else {
        const before: null[] = Array(index).fill(null);
        groups.push({ label: row, isDefault: index === 0 && row.isDefault, rows: [...before, row] });
      }
    }
    for (const group of groups) group.rows[index] ??= null;
  }
  // Players are not to begin with silence where a part has audio of its own.
  return groups.map((group) => ({ ...group, isDefault: group.isDefault && group.rows.every((row) => row !== null) }));
}

/**
 * Gives a joined asset its added tracks, and the labels of the first part's own ones. Throws 409 `asset_conflict` by `changed`
 * when tracks of a part were changed since they were joined.
 */
export async function addJoinedAudio(
  tx: Db,
  app: App,
  asset: AssetRow,
  { audio, first, changed }: { audio: JoinedAudio; first: AssetRow; changed: (assetId: number) => never },
): Promise<void> {
  const stamp = (rows: readonly AudioTrackRow[]) =>
    JSON.stringify(rows.filter((row) => isPlayed(row) || row.isRemoved).map(({ id, prefix }) => [id, prefix]));
  for (const [id, before] of audio.rows) if (stamp(await rowsOf(tx, id)) !== stamp(before)) changed(id);
  await copySourceTracks(tx, app, first, asset);
  for (const { label, isDefault, prefix, media, bytes } of audio.tracks)
    await addStoredTrack(tx, app, asset, { label, isDefault, prefix, media, bytes });
}
