import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { Readable } from "node:stream";
import { LRUCache } from "lru-cache";
import { type App, forApp } from "#app.ts";
import { nameOfShape, type StillShape } from "#features/playback/images/image-request.ts";
import { imageRenderer } from "#features/playback/images/render-image.ts";
import { notFound, sha256 } from "#lib/base";
import { INIT_NAME, segmentFileName } from "#media/arguments.ts";
import { contentTypeOf } from "#model/media-types.ts";
import { serveObject } from "#platform/http/serve-object.ts";
import { storageOf } from "#platform/http/storage.ts";
import { openFile } from "#storage/objects/read-file.ts";
import type { LiveStream } from "../registry.ts";
import type { StoredStream } from "../shared/stored-streams.ts";
import { folderOf } from "./files.ts";
import type { ViewerRequest } from "./viewer-request.ts";

/** How old an image may be that is served again. An encoder's segment has about 2 s. */
const FRESH_MS = 5000;
const CACHED_BYTES = 32 * 2 ** 20;

type Poster = { bytes: Buffer; etag: string; drawnAt: number };
type Wanted = { stream: LiveStream | StoredStream; shape: StillShape };

const posters = forApp((app) => {
  const { firstFrame } = imageRenderer(app);
  return new LRUCache<string, Poster, Wanted>({
    maxSize: CACHED_BYTES,
    sizeCalculation: ({ bytes }) => bytes.length,
    ttl: FRESH_MS,
    // Viewers who ask meanwhile wait for the same image. One of them who leaves does not end it.
    fetchMethod: async (name, _, { context: { stream, shape } }) => {
      const { tenantId, channelId } = stream;
      const owner = { tenantId, logged: { channel_id: channelId } };
      const { signal } = new AbortController();
      const bytes = await firstFrame(owner, () => openNewest(app, stream), shape, signal);
      return { bytes, etag: `"${sha256(`${name}${app.clock.now()}`).slice(0, 32)}"`, drawnAt: app.clock.now() };
    },
  });
});

/** The frame with which the newest segment of a stream begins. Throws 404 without video, 429, and 503 `busy`. */
export async function servePoster(
  { context, scope, onSent }: ViewerRequest,
  stream: LiveStream | StoredStream,
  shape: StillShape,
): Promise<Response> {
  const { app } = context;
  const drawn = posters(app);
  const name = `${stream.name}/${nameOfShape(shape)}`;
  if (!stream.timeline.poster) notFound("image");
  if (!drawn.has(name)) await context.limit("pictures");
  const poster = await drawn.fetch(name, { context: { stream, shape } });
  const { bytes, etag, drawnAt } = poster ?? notFound("image");
  const info = { key: name, bytes: bytes.length, etag, modifiedAt: new Date(drawnAt) };
  return serveObject({
    key: name,
    onSent,
    method: context.method,
    headers: context.headers,
    contentType: contentTypeOf(name),
    cacheControl: `${scope}, max-age=${FRESH_MS / 1000}`,
    objects: { head: async () => info, get: async () => ({ info, body: Readable.from([bytes]) }) },
    known: { info, bytes },
  });
}

/** The newest complete segment of the publisher's video, after its init segment. Throws 404. */
async function openNewest(app: App, stream: LiveStream | StoredStream) {
  const { track, segment } = stream.timeline.poster ?? notFound("image");
  const name = segmentFileName(segment);
  if ("prefix" in stream) {
    const objects = storageOf(app);
    const init = (await objects.get(`${stream.prefix}${track}/${INIT_NAME}`)) ?? notFound("image");
    const head = Buffer.concat(await init.body.toArray());
    const media = (await objects.get(`${stream.prefix}${track}/${name}`)) ?? notFound("image");
    return { input: joined(head, media.body), init: head, offsetSeconds: 0 };
  }
  const folder = folderOf(stream, track);
  const head = await readFile(join(folder, INIT_NAME)).catch(() => notFound("image"));
  const file = (await openFile(join(folder, name))) ?? notFound("image");
  const media = file.read({ start: 0, end: Number(file.stat.size) - 1 });
  return { input: joined(head, media), init: head, offsetSeconds: 0 };
}

const joined = (head: Buffer, media: Readable): Readable =>
  Readable.from(
    (async function* () {
      yield head;
      yield* media;
    })(),
  );
