import type { App } from "#app.ts";
import { DOCUMENT_LIMITS, HttpError, mapBounded } from "#lib/base";
import { readInit } from "#lib/isobmff";
import { differenceOf, type EncodingOfPart, renditionName } from "#media/join/encoding.ts";
import { ownPath } from "#model/object-keys.ts";
import { parseServed } from "#platform/parsing/parse-document.ts";
import type { AssetRow } from "#storage/db/schema.ts";
import { readSmallObject } from "#storage/objects/small-objects.ts";
import { type ObjectStore, ObjectTooLarge } from "#storage/objects/store.ts";
import { mediaKey } from "../assets/shared-media.ts";
import { startOfMedia } from "../transcoding/added-audio/clock.ts";

const AT_ONCE = 4;
/** Ours have less than 2 KB. */
const MAX_INIT_BYTES = 65_536;
/** The whole playlist. */
const ALL = { start: 0, end: 1e9 };

type Options = { signal: AbortSignal; impossible: (reason: string) => never };
/** `seconds`: how long its frames are presented, without them its packets of audio, by which the worker places the next part. */
type ReadPart = EncodingOfPart & { seconds: number };

/**
 * Checks that the segments of all assets can follow each other: the worker compares the init segments again. Resolves with the
 * length of each asset in seconds, by its id. Throws 422 `encodings_differ`, `join_not_possible` and `document_too_complex`.
 */
export async function requireEqualEncoding(
  app: App,
  objects: ObjectStore,
  parts: readonly AssetRow[],
  options: Options,
): Promise<Map<number, number>> {
  const all = await mapBounded(parts, { atOnce: AT_ONCE, signal: options.signal }, (part) =>
    encodingOf(app, objects, part, options),
  );
  const [first, ...others] = all;
  for (const other of others) {
    const difference = first && differenceOf(first, other);
    if (difference) throw new HttpError(422, "encodings_differ", difference);
  }
  return new Map(all.map(({ assetId, seconds }) => [assetId, seconds]));
}

async function encodingOf(
  app: App,
  objects: ObjectStore,
  asset: AssetRow,
  { signal, impossible }: Options,
): Promise<ReadPart> {
  const prefix = asset.mediaPrefix as string;
  const parsing = { tenantId: asset.tenantId, signal };
  const read = async (path: string, maxBytes: number): Promise<Buffer> => {
    try {
      const bytes = await readSmallObject(objects, mediaKey(asset, path), { maxBytes });
      return bytes ?? impossible(`the object ${path} of asset ${asset.id} is missing from storage`);
    } catch (error) {
      if (error instanceof ObjectTooLarge) return impossible(`the object ${path} of asset ${asset.id} is too large`);
      throw error;
    }
  };
  const start = await startOfMedia(app, asset);
  const path = ownPath(prefix, asset.manifestPath as string);
  const master = await parseServed(
    app,
    "clipMaster",
    { bytes: await read(path, DOCUMENT_LIMITS.servedBytes), path },
    parsing,
  );
  if ("impossible" in master) return impossible(String(master.impossible));
  const renditions: EncodingOfPart["renditions"][number][] = [];
  const lengths = { video: 0, audio: 0 };
  for (const playlist of master.playlists) {
    if (playlist.kind === "frames") continue;
    const name = renditionName(playlist.path);
    if (name === null || renditions.some((one) => one.name === name))
      return impossible(`a rendition of asset ${asset.id} has no directory of its own`);
    const text = await read(playlist.path, DOCUMENT_LIMITS.servedBytes);
    const cut = await parseServed(app, "clipPlaylist", { bytes: text, path: playlist.path, around: ALL }, parsing);
    if ("impossible" in cut) return impossible(String(cut.impossible));
    const bytes = await read(cut.init, MAX_INIT_BYTES);
    try {
      const init = readInit(bytes);
      renditions.push({ name, bytes, init });
      const kind = init.width > 0 ? "video" : "audio";
      // Packets before the first one that is presented, which the edit list skips.
      const skipped = kind === "audio" && start === 0 ? init.delay / init.timescale : 0;
      lengths[kind] = Math.max(lengths[kind], cut.end - cut.start - skipped);
    } catch {
      return impossible(`the init segment of ${name} of asset ${asset.id} cannot be read`);
    }
  }
  return { assetId: asset.id, frameRate: asset.frameRate, renditions, seconds: lengths.video || lengths.audio };
}
