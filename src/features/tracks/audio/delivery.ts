import { type App, forApp } from "#app.ts";
import { replacedMediaOf } from "#features/assets/replaced-media.ts";
import { rowsOf } from "#features/transcoding/added-audio/rows.ts";
import { FOLDER, PLAYLIST } from "#features/transcoding/added-audio/verify.ts";
import type { AudioChanges } from "#lib/manifests";
import { isPlainPath, lastFolderOf, splitFirst } from "#model/object-keys.ts";
import { cacheUntilCommit } from "#storage/db/commit-cache.ts";
import type { AudioTrackRow } from "#storage/db/schema.ts";

/** Below `/media/<asset>/`: the folder of added tracks. */
const ADDED = "audio-tracks/";

const remembered = forApp((app) => cacheUntilCommit(app.commits, (assetId: number) => rowsOf(app.db, assetId)));

/** Rows of an asset that change what players get, for frequent requests. */
export const playedTracks = async (app: App, assetId: number): Promise<AudioTrackRow[]> =>
  (await remembered(app)(assetId)).filter(({ status }) => status === "ready");

const addedFolder = ({ id, prefix }: AudioTrackRow) => `${ADDED}${id}/${lastFolderOf(prefix ?? "")}/`;

/** What manifests show. `carried` and `root` as in `Below` of src/lib/manifests/rebase.ts. */
export function audioChanges(
  rows: readonly AudioTrackRow[],
  { carried, root }: { carried: string; root: string },
): AudioChanges {
  const label = ({ name, language, role, isDefault }: AudioTrackRow) => ({ name, language, role, isDefault });
  return {
    changed: rows.flatMap((row) =>
      row.rendition === null ? [] : [{ ...label(row), rendition: row.rendition, isRemoved: row.isRemoved }],
    ),
    added: rows.flatMap((row) => {
      if (row.rendition !== null || !row.media || row.isRemoved) return [];
      const folder = addedFolder(row);
      const list = `${carried}${folder}${PLAYLIST}`;
      const base = `${root}${folder}${FOLDER}/`;
      return [{ ...label(row), ...row.media, id: row.id, list, base }];
    }),
  };
}

/**
 * The object of a file of an added track, also of media that it had less than an hour ago; null when the path is not one,
 * undefined when there is no such file.
 */
export async function addedFile(app: App, assetId: number, file: string): Promise<string | null | undefined> {
  if (!file.startsWith(ADDED)) return null;
  const rows = await playedTracks(app, assetId);
  const { folder: id, path: versioned } = splitFirst(file.slice(ADDED.length)) ?? { folder: "", path: "" };
  const { folder: version, path } = splitFirst(versioned) ?? { folder: "", path: "" };
  const row = rows.find((one) => one.prefix !== null && !one.isRemoved && String(one.id) === id);
  if (!row || version === "" || !isPlainPath(path)) return undefined;
  const isVersion = (prefix: string | null) => lastFolderOf(prefix ?? "") === version;
  if (isVersion(row.prefix)) return `${row.prefix}${path}`;
  const before = (await replacedMediaOf(app, assetId)).find(({ mediaPrefix }) => isVersion(mediaPrefix));
  return before && `${before.mediaPrefix}${path}`;
}
