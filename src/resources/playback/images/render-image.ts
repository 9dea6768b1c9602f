import { mkdir, rm } from "node:fs/promises";
import { join } from "node:path";
import type { AssetRow } from "../../../../storage/db/schema.ts";
import type { ObjectStore } from "../../../../storage/objects/store.ts";
import type { App } from "../../../app.ts";
import { cacheDir } from "../../../lib/cache-dir.ts";
import { HttpError, notFound } from "../../../lib/errors.ts";
import { queueOf, RETRY_HEADERS } from "../../../limits/expensive.ts";
import { QueueExceeded } from "../../../limits/fair-queue.ts";
import { binariesAside } from "../../../media/binaries.ts";
import { MediaError } from "../../../media/error.ts";
import { animated, type ImageSource, still } from "../../../media/image.ts";
import { killOrphans } from "../../../media/orphan-processes.ts";
import type { ImageRequest } from "./image-request.ts";
import { clipReader } from "./source-clip.ts";

const MAX_POSTER_BYTES = 16 * 2 ** 20;

/**
 * Pictures by the server's own ffmpeg, a few at a time and in turns among tenants. 404 where the asset has nothing to
 * make one of; 503 `busy` when too many of the tenant's wait, or one took too long. What `signal` aborts is not begun.
 */
export function imageRenderer(app: App) {
  const queue = queueOf(app, "pictures");
  const clipOf = clipReader(app);
  const folder = join(app.config.data_dir, "pictures");
  const pidDir = join(folder, "pids");
  let prepared: Promise<string> | undefined;

  const prepare = async () => {
    // No other server has this folder: what runs was left by the last one.
    await killOrphans(pidDir);
    await rm(folder, { recursive: true, force: true });
    await mkdir(pidDir, { recursive: true, mode: 0o700 });
    const { ffmpeg } = await binariesAside({
      ffmpeg: app.config.ffmpeg,
      ffprobe: app.config.ffprobe,
      cacheDir: cacheDir(),
    });
    return ffmpeg;
  };

  async function draw(objects: ObjectStore, asset: AssetRow, asked: ImageRequest): Promise<Buffer> {
    prepared ??= prepare();
    const ffmpeg = await prepared.catch((error) => {
      prepared = undefined;
      throw error;
    });
    const running = { ffmpeg, pidDir, signal: app.stopping };
    if (asked.kind === "animated") {
      const { start, end, width } = asked;
      const clip = (await clipOf(objects, asset, { start, end, width, height: null })) ?? notFound("picture");
      return animated(video(clip.input), { ...asked, ...clip, seconds: end - start }, running);
    }
    const { time, box } = asked;
    const clip = time === null ? null : await clipOf(objects, asset, { start: time, end: time, ...box });
    const source = clip ? video(clip.input) : await poster(objects, asset);
    return still(source, { ...asked, offsetSeconds: clip?.offsetSeconds ?? 0 }, running);
  }

  return async (objects: ObjectStore, asset: AssetRow, asked: ImageRequest, signal: AbortSignal): Promise<Buffer> => {
    try {
      const bytes = await queue.run(asset.tenantId, () => draw(objects, asset, asked), signal);
      // An animation that begins behind the last frame, say.
      return bytes.length > 0 ? bytes : notFound("picture");
    } catch (error) {
      if (error instanceof QueueExceeded) throw busy("Too many pictures are being made; try again.");
      if (!(error instanceof MediaError)) throw error;
      if (error.code === "timeout") throw busy("The picture took too long; try again, or ask for less.");
      if (error.code === "aborted") throw busy("The server stops; try again.");
      app.log.warn({ asset_id: asset.id, code: error.code, log: error.logTail }, "no picture could be made");
      return notFound("picture");
    }
  };
}

const video = (input: ImageSource["input"]): ImageSource => ({ input, kind: "video" });

async function poster(objects: ObjectStore, { thumbnailPath }: AssetRow): Promise<ImageSource> {
  const { info, body } = (thumbnailPath && (await objects.get(thumbnailPath))) || notFound("picture");
  if (info.bytes > MAX_POSTER_BYTES) {
    body.destroy();
    notFound("picture");
  }
  return { input: body, kind: "picture" };
}

const busy = (message: string) => new HttpError(503, "busy", message, { headers: RETRY_HEADERS });
