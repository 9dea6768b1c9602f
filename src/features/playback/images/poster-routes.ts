import { Readable } from "node:stream";
import * as v from "valibot";
import type { App } from "#app.ts";
import { type StoredPoster, setPoster } from "#features/assets/poster.ts";
import { getAsset } from "#features/assets/queries.ts";
import { Asset, toAsset } from "#features/assets/schema.ts";
import { HttpError, invalid, notFound } from "#lib/base";
import { contentTypeOf } from "#model/media-types.ts";
import { newPosterKey } from "#model/object-keys.ts";
import { readBytes, readJson } from "#platform/http/body.ts";
import { putPending } from "#platform/http/object-gc.ts";
import { RecordIdInPath } from "#platform/http/parameters.ts";
import { type Context, route } from "#platform/http/route.ts";
import { storageOf } from "#platform/http/storage.ts";
import { validate } from "#platform/http/validate.ts";
import { admit } from "#platform/limits/expensive.ts";
import type { AssetRow } from "#storage/db/schema.ts";
import { jpegSize } from "./jpeg-size.ts";
import { imageRenderer } from "./render-image.ts";

const MAX_IMAGE_BYTES = 10 * 2 ** 20;
const MAX_JSON_BYTES = 1024;
const IMAGE_TYPE = /^image\/(jpeg|png|webp)\b/i;

const RawImage = v.pipe(
  v.string(),
  v.metadata({ openapi: { type: "string", format: "binary" } }),
  v.description("At most 10 MiB"),
);
const Frame = v.object({
  time_seconds: v.pipe(
    v.number("must be a number of seconds"),
    v.minValue(0, "must not be negative"),
    v.description("The frame of the video that is shown then"),
  ),
});

const path = "/api/v1/assets/:id/poster";
const shared = { path, scope: "assets:write", tag: "Assets", params: v.object({ id: RecordIdInPath }) } as const;

export const posterRoutes = [
  route({
    ...shared,
    method: "PUT",
    operationId: "setPoster",
    summary: "Choose the poster of an asset: an image, or a frame of the video",
    // Bodies are in memory until they are decoded, which this queue bounds.
    expensive: "posters",
    raw: true,
    rawBody: { "image/jpeg": RawImage, "image/png": RawImage, "image/webp": RawImage, "application/json": Frame },
    responses: { 200: Asset },
    errors: {
      400: ["invalid_json", "incomplete_body"],
      409: ["asset_conflict"],
      413: ["payload_too_large"],
      415: ["unsupported_media_type"],
      422: ["validation_failed", "parameter_missing", "invalid_image", "asset_not_ready"],
      503: ["storage_not_configured"],
    },
    async handle(context) {
      const { app, caller, params, signal } = context;
      const asset = (await getAsset(app.db, caller, params.id)) ?? notFound("asset");
      requireManaged(asset);
      storageOf(app);
      const permit = await admit(app, "posters", asset.tenantId, signal);
      try {
        const poster = await storePoster(app, asset, await imageOf(context, asset));
        return toAsset(
          await app.write(async (tx) => {
            // The asset may have been deleted meanwhile.
            const current = (await getAsset(tx, caller, params.id)) ?? notFound("asset");
            return setPoster(tx, app, current, poster);
          }),
        );
      } finally {
        permit.release();
      }
    },
  }),
  route({
    ...shared,
    method: "DELETE",
    operationId: "deletePoster",
    summary: "Return to the automatic poster of an asset",
    responses: { 200: Asset },
    handle: async ({ app, caller, params }) =>
      toAsset(
        await app.write(async (tx) =>
          setPoster(tx, app, (await getAsset(tx, caller, params.id)) ?? notFound("asset"), null),
        ),
      ),
  }),
];

function requireManaged({ provider }: AssetRow): void {
  if (provider !== "managed")
    throw new HttpError(409, "asset_conflict", "The asset is served externally; its poster is not served here.");
}

/** The poster as JPEG, decoded and encoded again: nothing of what a client sent is served. */
async function imageOf(context: Context, asset: AssetRow): Promise<Buffer> {
  const { app, headers, signal } = context;
  const renderer = imageRenderer(app);
  const type = headers.get("content-type") ?? "";
  if (IMAGE_TYPE.test(type)) {
    const bytes = await readBytes(context, MAX_IMAGE_BYTES);
    return isImage(bytes) ? renderer.posterFromImage(asset, Readable.from([bytes]), signal) : notAnImage();
  }
  if (!/^application\/json\b/i.test(type))
    throw new HttpError(415, "unsupported_media_type", "Send a JPEG, PNG or WebP image, or JSON with time_seconds.");
  const { time_seconds: time } = validate(Frame, await readJson(context, { maxBytes: MAX_JSON_BYTES }), "body");
  if (asset.playbackStatus !== "ready")
    throw new HttpError(422, "asset_not_ready", `The asset is ${asset.playbackStatus}, not ready.`);
  if (time > asset.durationSeconds) invalid("time_seconds", `must be at most ${asset.durationSeconds}`);
  return renderer.posterFromVideo(storageOf(app), asset, time, signal);
}

const notAnImage = (): never => {
  throw new HttpError(422, "invalid_image", "The body is not a JPEG, PNG or WebP image.");
};

/** By the first bytes of JPEG, PNG and WebP: ffmpeg is given nothing else. */
function isImage(bytes: Uint8Array): boolean {
  const hex = Buffer.from(bytes.subarray(0, 12)).toString("hex");
  return /^(ffd8ff|89504e470d0a1a0a|52494646[0-9a-f]{8}57454250)/.test(hex);
}

async function storePoster(app: App, asset: AssetRow, image: Buffer): Promise<StoredPoster> {
  const size = jpegSize(image) ?? notAnImage();
  const key = newPosterKey(asset);
  await putPending(app, storageOf(app), key, image, { contentType: contentTypeOf(key) });
  return { path: key, bytes: image.length, ...size };
}
