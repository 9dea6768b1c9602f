import { type App, forApp } from "#app.ts";
import { rowsOf } from "#features/transcoding/added-audio/rows.ts";
import { FOLDER, PLAYLIST } from "#features/transcoding/added-audio/verify.ts";
import type { AudioChanges } from "#lib/manifests";
import { isPlainPath, lastFolderOf, ownPath } from "#model/object-keys.ts";
import { cacheUntilCommit } from "#storage/db/commit-cache.ts";
import type { AudioTrackRow } from "#storage/db/schema.ts";

/** Below `/media/<asset>/`: the folder of added tracks. */
export const ADDED = "audio-tracks/";

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

/** The object of a file of an added track; null when the path is not one, undefined when there is no such file. */
export function addedFile(rows: readonly AudioTrackRow[], file: string): string | null | undefined {
  if (!file.startsWith(ADDED)) return null;
  const row = rows.find((one) => one.prefix !== null && !one.isRemoved && file.startsWith(addedFolder(one)));
  const path = row && ownPath(addedFolder(row), file);
  if (!path || !isPlainPath(path)) return undefined;
  return `${row.prefix}${path}`;
}
