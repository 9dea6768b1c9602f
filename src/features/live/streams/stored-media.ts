import { mkdir, open, rm } from "node:fs/promises";
import { join } from "node:path";
import type { App } from "#app.ts";
import { mapBounded, writeAll } from "#lib/base";
import { SEGMENT_HEAD_BYTES } from "#lib/isobmff";
import { INIT_NAME, SEGMENT_PATTERN, segmentFileName } from "#media/arguments.ts";
import { fileNameOf, lastFolderOf, ownPath } from "#model/object-keys.ts";
import { storageOf } from "#platform/http/storage.ts";
import { diskOf } from "#platform/limits/disk-reserve.ts";
import { listAll } from "#storage/objects/list-all.ts";
import type { ObjectInfo, ObjectStore } from "#storage/objects/store.ts";

const AT_ONCE = 16;
/** A smaller object is read whole: the request takes longer than the bytes. */
const SMALL_BYTES = 16 * 1024;

/** Segments of a track by their numbers. */
type StoredTrack = { name: string; init: ObjectInfo; segments: ObjectInfo[] };

/**
 * Writes what is stored of a stream to the directory `folder`, as its server had it: the init segments, and the segments up
 * to the first one that is missing. Manifests are made of their heads, so only those are read, and the files are sparse;
 * the first segment and the last ones, which a recording may change, are complete. Returns the paths, relative to `folder`.
 * Throws StorageFull, and the errors of storage.
 */
export async function readStoredMedia(app: App, prefix: string, folder: string): Promise<string[]> {
  const objects = storageOf(app);
  await rm(folder, { recursive: true, force: true });
  const tracks = await storedTracks(objects, prefix);
  // A recording ends where its first track does.
  const ends = new Set(tracks.flatMap(({ segments: { length } }) => [length - 1, length, length + 1]));
  const wanted = tracks.flatMap(({ init, segments }) => [
    { info: init, isWhole: true },
    ...segments.map((info, index) => ({ info, isWhole: index === 0 || ends.has(index + 1) })),
  ]);
  for (const { name } of tracks) await mkdir(join(folder, name), { recursive: true, mode: 0o700 });
  return mapBounded(wanted, { atOnce: AT_ONCE }, async ({ info, isWhole }) => {
    const path = ownPath(prefix, info.key);
    await copyObject(app, info, { path: join(folder, path), isWhole: isWhole || info.bytes <= SMALL_BYTES });
    return path;
  });
}

async function storedTracks(objects: Pick<ObjectStore, "list">, prefix: string): Promise<StoredTrack[]> {
  const byTrack = new Map<string, Map<string, ObjectInfo>>();
  for await (const info of listAll(objects, prefix)) {
    const path = ownPath(prefix, info.key);
    const track = lastFolderOf(path);
    const name = fileNameOf(path);
    // Renditions have their own directory.
    if (path !== `${track}/${name}`) continue;
    if (name !== INIT_NAME && !SEGMENT_PATTERN.test(name)) continue;
    const files = byTrack.get(track) ?? new Map<string, ObjectInfo>();
    byTrack.set(track, files.set(name, info));
  }
  return [...byTrack].flatMap(([name, files]) => {
    const init = files.get(INIT_NAME);
    const segments: ObjectInfo[] = [];
    for (let next = files.get(segmentFileName(1)); next; next = files.get(segmentFileName(segments.length + 1)))
      segments.push(next);
    return init && segments.length > 0 ? [{ name, init, segments }] : [];
  });
}

/**
 * Writes an object to the file `path`, which has its size: all of it, or only the head of a segment. Throws when it is gone,
 * and StorageFull.
 */
export async function copyObject(
  app: App,
  { key, bytes }: Pick<ObjectInfo, "key" | "bytes">,
  { path, isWhole }: { path: string; isWhole: boolean },
): Promise<void> {
  const range = isWhole ? undefined : { start: 0, end: SEGMENT_HEAD_BYTES - 1 };
  const found = await storageOf(app).get(key, range);
  if (!found) throw new Error(`${key} was deleted.`);
  await using file = await open(path, "w");
  let at = 0;
  for await (const chunk of found.body as AsyncIterable<Buffer>) {
    const written = await diskOf(app).admit(chunk.length);
    try {
      at += await writeAll(file, [chunk], at);
    } finally {
      written();
    }
  }
  if (isWhole && at !== bytes) throw new Error(`${key} has ${at} bytes, not ${bytes}.`);
  await file.truncate(bytes);
}
