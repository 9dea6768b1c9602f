import * as v from "valibot";
import type { App } from "#app.ts";
import { iso } from "#lib/base";
import { videoCodecs } from "#lib/codecs";
import { encodingSpec } from "#media/encoding-spec.ts";
import type { AssetRow } from "#storage/db/schema.ts";
import { hasMp4, mp4Bytes } from "../static-renditions/mp4.ts";
import { chaptersOf, endedChapters } from "../tracks/timed/chapters.ts";
import { layoutOf } from "./vr-layout.ts";
import { fileSize, vrSources } from "./vr-manifest.ts";

/** Without this header the player treats the response as a page. */
export const HERESPHERE_VERSION = { "HereSphere-JSON-Version": "1" };
const MEMBER = 1;
/** Centimeters between the lenses: the value the player assumes for any camera. */
const CAMERA_IPD = 6.5;

const Source = v.object({
  resolution: v.number(),
  height: v.number(),
  width: v.number(),
  size: v.pipe(v.number(), v.description("Bytes; 0 when it is not a single file")),
  url: v.string(),
});
const Milliseconds = v.pipe(v.number(), v.description("Milliseconds"));

/** The video description that HereSphere reads, version 1 of its JSON. The API offers it no changes. */
export const HereSphereManifest = v.pipe(
  v.object({
    access: v.literal(MEMBER),
    title: v.string(),
    description: v.string(),
    thumbnailImage: v.string(),
    dateReleased: v.string(),
    dateAdded: v.string(),
    duration: Milliseconds,
    rating: v.number(),
    favorites: v.number(),
    comments: v.number(),
    isFavorite: v.boolean(),
    projection: v.picklist([
      ...(["perspective", "equirectangular", "equirectangular360", "fisheye"] as const),
      ...(["cubemap", "equiangularCubemap"] as const),
    ]),
    stereo: v.picklist(["mono", "sbs", "tb"]),
    isEyeSwapped: v.boolean(),
    fov: v.pipe(v.number(), v.description("Degrees")),
    lens: v.picklist(["Linear", "MKX200", "MKX220", "VRCA220"]),
    cameraIPD: v.number(),
    subtitles: v.array(v.object({ name: v.string(), language: v.string(), url: v.string() })),
    tags: v.array(v.object({ name: v.string(), start: Milliseconds, end: Milliseconds })),
    media: v.array(v.object({ name: v.string(), sources: v.array(Source) })),
    writeFavorite: v.boolean(),
    writeRating: v.boolean(),
    writeTags: v.boolean(),
    writeHSP: v.boolean(),
  }),
  v.title("HereSphereManifest"),
);
type Manifest = v.InferInput<typeof HereSphereManifest>;
type Addresses = {
  hlsUrl: string;
  mp4Url: string | null;
  thumbnailUrl: string | null;
  subtitles: readonly { language: string; label: string; url: string }[];
};

export const isHereSphere = (headers: Headers): boolean =>
  headers.has("heresphere-json-version") || /heresphere/i.test(headers.get("user-agent") ?? "");

const day = (ms: number) => iso(ms).slice(0, 10);

/**
 * URLs without further credentials. A single file precedes a playlist, because the player can seek in it and store it.
 */
export async function hereSphereManifest(
  app: App,
  asset: AssetRow,
  { hlsUrl, mp4Url, thumbnailUrl, subtitles }: Addresses,
): Promise<Manifest> {
  const { projection, fov, lens, stereo } = layoutOf(asset.tags);
  const durationMs = Math.round(asset.durationSeconds * 1000);
  const { vrName } = videoCodecs[encodingSpec.video.codec];
  const chapters = endedChapters(await chaptersOf(app.db, asset.id), durationMs);
  return {
    access: MEMBER,
    title: asset.title,
    description: asset.description ?? "",
    thumbnailImage: thumbnailUrl ?? "",
    dateReleased: day(asset.readyAt ?? asset.createdAt),
    dateAdded: day(asset.createdAt),
    duration: durationMs,
    rating: 0,
    favorites: 0,
    comments: 0,
    isFavorite: false,
    projection,
    stereo,
    isEyeSwapped: false,
    fov,
    lens,
    cameraIPD: CAMERA_IPD,
    subtitles: subtitles.map(({ label, language, url }) => ({ name: label, language, url })),
    // The player groups them by the text before the colon.
    tags: chapters.map(({ title, startMs, endMs }) => ({ name: `Chapter:${title}`, start: startMs, end: endMs })),
    media: [
      ...(mp4Url === null ? [] : [media(vrName, mp4Url, { ...fileSize(asset), bytes: await fileBytes(app, asset) })]),
      media("HLS", hlsUrl, { width: asset.width, height: asset.height, bytes: 0 }),
      ...vrSources(asset, hlsUrl).map(({ name, sources }) => ({
        name: `HLS ${name}`,
        sources: sources.map(({ width, height, url }) => ({ resolution: height, height, width, size: 0, url })),
      })),
    ],
    writeFavorite: false,
    writeRating: false,
    writeTags: false,
    writeHSP: false,
  };
}

type Dimensions = { width: number | null; height: number | null; bytes: number };
const media = (name: string, url: string, { width, height, bytes }: Dimensions): Manifest["media"][number] => ({
  name,
  sources: [{ resolution: height ?? 0, height: height ?? 0, width: width ?? 0, size: bytes, url }],
});

const fileBytes = async (app: App, asset: AssetRow): Promise<number> =>
  (hasMp4(asset) ? await mp4Bytes(app, asset) : null) ?? 0;
