import { mkdir, rm } from "node:fs/promises";
import { join } from "node:path";
import type { Readable } from "node:stream";
import { forApp } from "#app.ts";
import { posterOf } from "#features/assets/poster.ts";
import { clientClosed, HttpError, notFound } from "#lib/base";
import { binariesAside, cacheDir } from "#lib/executable";
import { killOrphans } from "#lib/sandbox";
import { MediaError } from "#media/error.ts";
import { animated, type ImageSource, still } from "#media/image.ts";
import { type ExpensiveName, queueOf, RETRY_HEADERS } from "#platform/limits/expensive.ts";
import { QueueExceeded } from "#platform/limits/fair-queue.ts";
import type { AssetRow } from "#storage/db/schema.ts";
import type { ObjectStore } from "#storage/objects/store.ts";
import type { ImageRequest, StillShape } from "./image-request.ts";
import { type Clip, clipReader } from "./source-clip.ts";
import { sheetOf } from "./storyboard-sheet.ts";

const MAX_IMAGE_BYTES = 16 * 2 ** 20;

/** The tenant whose share of the renderer is used. `logged`: fields of the log. */
type Owner = { tenantId: number; logged: Record<string, string | number> };
const ownerOf = ({ id, tenantId }: AssetRow): Owner => ({ tenantId, logged: { asset_id: id } });

/**
 * Generates images with the server's own ffmpeg, a few at a time, fairly among tenants. Still images and animations
 * have their own slots, and animations are suspended while still images are drawn. Throws 404 when the asset has no
 * suitable media; 503 `busy` when the tenant's queue is full, or one took too long. `signal` ends a run at once.
 */
export const imageRenderer = forApp((app) => {
  const clipOf = clipReader(app);
  const folder = join(app.config.data_dir, "pictures");
  const pidDir = join(folder, "pids");
  let prepared: Promise<string> | undefined;

  const prepare = async () => {
    // The directory belongs to this server alone: recorded processes are left from its previous run.
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

  const running = async (killSignal: AbortSignal) => {
    prepared ??= prepare();
    const ffmpeg = await prepared.catch((error) => {
      prepared = undefined;
      throw error;
    });
    return { ffmpeg, pidDir, signal: app.stopping, killSignal };
  };

  async function draw(
    objects: ObjectStore,
    asset: AssetRow,
    request: ImageRequest,
    signal: AbortSignal,
  ): Promise<Buffer> {
    const tool = await running(signal);
    if (request.kind === "animated") {
      const { start, end, width, height } = request;
      const clip = (await clipOf(objects, asset, { start, end, width, height })) ?? notFound("image");
      return animated(video(clip), { ...request, ...clip, seconds: end - start }, tool);
    }
    if (request.kind === "sheet") {
      const source = await readImage(objects, await sheetOf(app, objects, asset));
      const box = { width: request.width, height: null, fit: "preserve" } as const;
      return still(source, { offsetSeconds: 0, box, format: request.format }, tool);
    }
    const { time, box, rotation } = request;
    // The rendition is chosen by the size that the frame has before it is turned.
    const sides = rotation.rotate % 180 === 0 ? box : { width: box.height, height: box.width };
    const clip = time === null ? null : await clipOf(objects, asset, { start: time, end: time, ...sides });
    const source = clip ? video(clip) : await readImage(objects, posterOf(asset));
    return still(source, { ...request, offsetSeconds: clip?.offsetSeconds ?? 0 }, tool);
  }

  /** `impossible` throws the error of an image that cannot be rendered. */
  async function queued(
    { owner, signal, queue = "pictures" }: { owner: Owner; signal: AbortSignal; queue?: ExpensiveName },
    work: () => Promise<Buffer>,
    impossible: () => never,
  ) {
    try {
      const bytes = await queueOf(app, queue).run(owner.tenantId, work, signal);
      // For example, an animation that begins after the last frame.
      return bytes.length > 0 ? bytes : impossible();
    } catch (error) {
      if (error instanceof QueueExceeded) throw busy("Too many images are being rendered; try again.");
      if (!(error instanceof MediaError)) throw error;
      if (error.code === "timeout")
        throw busy("Rendering the image took too long; try again, or request a smaller one.");
      if (signal.aborted) throw clientClosed();
      if (error.code === "aborted") throw busy("The server is stopping; try again.");
      app.log.warn({ ...owner.logged, code: error.code, log: error.logTail }, "an image could not be rendered");
      return impossible();
    }
  }

  return {
    render: (objects: ObjectStore, asset: AssetRow, request: ImageRequest, signal: AbortSignal): Promise<Buffer> =>
      queued(
        { owner: ownerOf(asset), signal, queue: request.kind === "animated" ? "animations" : "pictures" },
        () => draw(objects, asset, request, signal),
        () => notFound("image"),
      ),
    /** A poster as JPEG from an image of a client. Throws 422 `invalid_image` when it cannot be decoded. */
    posterFromImage: (asset: AssetRow, input: Readable, signal: AbortSignal): Promise<Buffer> =>
      queued(
        { owner: ownerOf(asset), signal },
        async () => still({ input, kind: "image" }, { ...POSTER, offsetSeconds: 0 }, await running(signal)),
        () => unprocessable("The image is damaged, too large, or of an unsupported kind."),
      ),
    /** A poster as JPEG from a frame of the video. Throws 422 `invalid_image` when there is none. */
    posterFromVideo: (objects: ObjectStore, asset: AssetRow, time: number, signal: AbortSignal): Promise<Buffer> => {
      const noFrame = () => unprocessable("The asset has no video frame at this time.");
      const work = async () => {
        const clip = (await clipOf(objects, asset, { start: time, end: time, ...POSTER.box })) ?? noFrame();
        return still(video(clip), { ...POSTER, offsetSeconds: clip.offsetSeconds }, await running(signal));
      };
      return queued({ owner: ownerOf(asset), signal }, work, noFrame);
    },
    /** The frame with which media begin that are no asset's: `open` is called once it can be rendered. Throws 404 without one. */
    firstFrame: (owner: Owner, open: () => Promise<Clip>, shape: StillShape, signal: AbortSignal): Promise<Buffer> =>
      queued(
        { owner, signal },
        async () => {
          const tool = await running(signal);
          return still(video(await open()), { ...shape, offsetSeconds: 0 }, tool);
        },
        () => notFound("image"),
      ),
  };
});

/** The frame of a poster: not enlarged, and no larger than an on-demand image. */
const POSTER = { box: { width: 1920, height: 1920, fit: "preserve" }, format: "jpg" } as const;

const unprocessable = (message: string): never => {
  throw new HttpError(422, "invalid_image", message);
};

const video = ({ input, init }: Clip): ImageSource => ({ input, kind: "video", init });

async function readImage(objects: ObjectStore, key: string | null): Promise<ImageSource> {
  const { info, body } = (key && (await objects.get(key))) || notFound("image");
  if (info.bytes > MAX_IMAGE_BYTES) {
    body.destroy();
    notFound("image");
  }
  return { input: body, kind: "image" };
}

const busy = (message: string) => new HttpError(503, "busy", message, { headers: RETRY_HEADERS });
