import { join } from "node:path";
import { notFound } from "#lib/base";
import { segmentPaths } from "#live/cmaf/segment-file.ts";
import { partName } from "#live/playlists/names.ts";
import type { PartLocation } from "#live/playlists/part-list.ts";
import { RENDITIONS_FOLDER } from "#live/renditions/messages.ts";
import { INIT_NAME, segmentFileName } from "#media/arguments.ts";
import { contentTypeOf } from "#model/media-types.ts";
import { segmentCacheOf } from "#platform/http/segment-cache.ts";
import { serveObject } from "#platform/http/serve-object.ts";
import { storageOf } from "#platform/http/storage.ts";
import { openFile } from "#storage/objects/read-file.ts";
import type { ByteRange, ObjectInfo } from "#storage/objects/store.ts";
import type { LiveStream } from "../registry.ts";
import { renditionsPrefix } from "../shared/server.ts";
import type { StoredStream } from "../shared/stored-streams.ts";
import { type ViewerRequest, whileConnected } from "./viewer-request.ts";

const FOREVER = "max-age=31536000, immutable";

/** A file, or a part of one, under the name that the playlist has for it. */
type LiveFile = {
  stream: LiveStream;
  track: string;
  name: string;
  /** Where the file may be. */
  paths: readonly string[];
  part?: PartLocation;
};

export const serveInit = (request: ViewerRequest, stream: LiveStream, track: string): Promise<Response> =>
  serve(request, { stream, track, name: INIT_NAME, paths: [join(folderOf(stream, track), INIT_NAME)] });

/** A complete segment. Throws 404 unless a playlist lists it, or did until recently. */
export async function serveSegment(
  request: ViewerRequest,
  stream: LiveStream,
  track: string,
  segment: number,
): Promise<Response> {
  if (!stream.timeline.hasSegment(track, segment)) notFound("segment");
  const name = segmentFileName(segment);
  return serve(request, { stream, track, name, paths: [join(folderOf(stream, track), name)] });
}

/**
 * How many segments after the last one in its playlist a stored stream serves: a viewer may have read the playlist of a
 * server that is ahead.
 */
const AHEAD = 5;

/** A file of a stream that another server receives: the init segment, or segment `segment`. Throws 404 as `serveSegment`. */
export async function serveStored(
  { context, scope, onSent }: ViewerRequest,
  { prefix, timeline }: StoredStream,
  track: string,
  segment: number | null,
): Promise<Response> {
  if (segment !== null && !timeline.hasSegment(track, segment, AHEAD)) notFound("segment");
  const folder = timeline.isEncoded(track) ? renditionsPrefix(prefix) : prefix;
  const key = `${folder}${track}/${segment === null ? INIT_NAME : segmentFileName(segment)}`;
  const cache = segmentCacheOf(context.app);
  return serveObject({
    objects: storageOf(context.app),
    key,
    onSent,
    method: context.method,
    headers: context.headers,
    contentType: contentTypeOf(key),
    cacheControl: `${scope}, ${FOREVER}`,
    ...(cache && { cache }),
  });
}

/** Waits for a part that is announced. Throws what `waitForPart` throws, 499 when the client disconnects. */
export async function servePart(
  request: ViewerRequest,
  stream: LiveStream,
  track: string,
  wanted: { segment: number; part: number },
): Promise<Response> {
  const part = await whileConnected(request, (signal) => stream.timeline.waitForPart(track, wanted, signal));
  const paths = segmentPaths(join(folderOf(stream, track), segmentFileName(part.segment)));
  return serve(request, { stream, track, name: partName(wanted.segment, wanted.part), paths, part });
}

async function serve({ context, scope, onSent }: ViewerRequest, source: LiveFile): Promise<Response> {
  const { stream, track, name, part } = source;
  const file = (await openFirst(source.paths)) ?? notFound("file");
  const offset = part?.offset ?? 0;
  const bytes = part?.bytes ?? Number(file.stat.size);
  const key = `${stream.name}/${track}/${name}`;
  // The name of a stream is unique, so the bytes at this URL never change.
  const info: ObjectInfo = { key, bytes, etag: `"${key}"`, modifiedAt: new Date(stream.startedAt) };
  const read = ({ start, end }: ByteRange) => file.read({ start: offset + start, end: offset + end });
  let isRead = false;
  const get = async (_: string, range: ByteRange = { start: 0, end: bytes - 1 }) => {
    isRead = true;
    return { info, body: read(range) };
  };
  try {
    return await serveObject({
      key,
      onSent,
      method: context.method,
      headers: context.headers,
      contentType: contentTypeOf(name),
      objects: { head: async () => info, get },
      known: { info },
      cacheControl: `${scope}, ${FOREVER}`,
    });
  } finally {
    // The stream that `read` returns closes it.
    if (!isRead) await file.close();
  }
}

/** Directory of a track. */
export const folderOf = ({ folder, timeline }: LiveStream, track: string): string =>
  timeline.isEncoded(track) ? join(folder, RENDITIONS_FOLDER, track) : join(folder, track);

async function openFirst(paths: readonly string[]) {
  for (const path of paths) {
    const file = await openFile(path);
    if (file) return file;
  }
  return null;
}
