import { and, eq } from "drizzle-orm";
import type { App } from "#app.ts";
import { rowsOf } from "#features/transcoding/added-audio/rows.ts";
import { canonicalLanguage } from "#lib/base";
import { hlsAttribute } from "#lib/manifests";
import { lastFolderOf } from "#model/object-keys.ts";
import { isAudioName, stereoName } from "#protocol/audio-renditions.ts";
import type { Db } from "#storage/db/open.ts";
import { type AssetRow, type AudioTrackRow, audioTracks } from "#storage/db/schema.ts";
import { readSmallObject } from "#storage/objects/small-objects.ts";

const MAX_MASTER_BYTES = 512 * 1024;
const MAX_NAME = 200;

type SourceTrack = { rendition: string; name: string; language: string | null };

/** The audio tracks of an asset's own media, as its stored master playlist lists them; 5.1 renditions belong to their stereo ones. */
async function tracksOfMedia(app: App, asset: AssetRow): Promise<SourceTrack[]> {
  const names = [...asset.renditions, ...asset.audioRenditions].map(({ name }) => name);
  const stereo = names.filter((name) => isAudioName(name) && name.startsWith(stereoName(0)));
  if (stereo.length === 0 || asset.manifestPath === null || !app.objects) return [];
  const bytes = await readSmallObject(app.objects, asset.manifestPath, { maxBytes: MAX_MASTER_BYTES });
  const listed = new Map<string, { name: string; language: string | null }>();
  for (const line of (bytes?.toString("utf8") ?? "").split("\n")) {
    if (!line.startsWith("#EXT-X-MEDIA:") || hlsAttribute(line, "TYPE") !== "AUDIO") continue;
    const folder = lastFolderOf(hlsAttribute(line, "URI") ?? "");
    const language = canonicalLanguage(hlsAttribute(line, "LANGUAGE") ?? "") ?? null;
    if (!listed.has(folder)) listed.set(folder, { name: hlsAttribute(line, "NAME") ?? "", language });
  }
  return stereo.map((rendition, index) => {
    const { name = "", language = null } = listed.get(rendition) ?? {};
    return { rendition, name: name.slice(0, MAX_NAME) || `Audio ${index + 1}`, language };
  });
}

/**
 * All audio tracks of an asset: those of its source first, which get rows when they are listed first. Tracks that its media do
 * not have any more, after another encode, are left out.
 */
export async function listedTracks(app: App, asset: AssetRow): Promise<AudioTrackRow[]> {
  const own = asset.playbackStatus === "ready" ? await tracksOfMedia(app, asset) : [];
  let rows = await rowsOf(app.db, asset.id);
  if (own.some(({ rendition }) => !rows.some((row) => row.rendition === rendition)))
    rows = await app.write(async (tx) => {
      const now = app.clock.now();
      for (const [index, track] of own.entries())
        await tx
          .insert(audioTracks)
          .values({
            ...track,
            tenantId: asset.tenantId,
            assetId: asset.id,
            status: "ready",
            role: index === 0 ? "main" : "alternate",
            createdAt: now,
            updatedAt: now,
          })
          .onConflictDoNothing();
      return rowsOf(tx, asset.id);
    });
  const renditions = new Set(own.map(({ rendition }) => rendition));
  return rows
    .filter((row) => !row.isRemoved && (row.rendition === null || renditions.has(row.rendition)))
    .sort((a, b) => Number(a.rendition === null) - Number(b.rendition === null) || a.id - b.id);
}

/** A clip shows the tracks of its parent's source as these are labeled, and those only that were not removed. */
export async function copySourceTracks(tx: Db, app: App, from: AssetRow, clip: AssetRow): Promise<void> {
  const now = app.clock.now();
  for (const { id: _, ...row } of await rowsOf(tx, from.id))
    if (row.rendition !== null)
      await tx.insert(audioTracks).values({ ...row, assetId: clip.id, createdAt: now, updatedAt: now });
}

/** Which of the listed tracks players begin with: the chosen one, else the first that plays. */
export const defaultOf = (rows: readonly AudioTrackRow[]): AudioTrackRow | undefined =>
  rows.find((row) => row.isDefault && row.status === "ready") ?? rows.find((row) => row.status === "ready");

/** The track of a path, on this asset. */
export const trackOf = (db: Db, assetId: number, id: number): Promise<AudioTrackRow | undefined> =>
  db
    .select()
    .from(audioTracks)
    .where(and(eq(audioTracks.id, id), eq(audioTracks.assetId, assetId), eq(audioTracks.isRemoved, false)))
    .get();
