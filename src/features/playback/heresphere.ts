import * as v from "valibot";
import type { App } from "#app.ts";
import { iso } from "#lib/base";
import { videoCodecs } from "#lib/codecs";
import { encodingSpec } from "#media/encoding-spec.ts";
import { describedAs } from "#protocol/fields.ts";
import {
  DescriptionField,
  HeightField,
  LanguageField,
  NameField,
  TitleField,
  UrlField,
  WidthField,
} from "#protocol/record-fields.ts";
import type { AssetRow } from "#storage/db/schema.ts";
import { hasMp4, mp4Bytes } from "../static-renditions/mp4.ts";
import { chaptersOf, endedChapters } from "../tracks/timed/chapters.ts";
import { StereoModeField, VrThumbnailUrl } from "./record-fields.ts";
import { layoutOf } from "./vr-layout.ts";
import { fileSize, vrSources } from "./vr-manifest.ts";

/** Without this header the player treats the response as a page. */
export const HERESPHERE_VERSION = { "HereSphere-JSON-Version": "1" };
const MEMBER = 1;
/** Centimeters between the lenses: the value the player assumes for any camera. */
const CAMERA_IPD = 6.5;

const Source = v.object({
  resolution: HeightField,
  height: HeightField,
  width: WidthField,
  size: v.pipe(v.number(), v.description("Bytes; 0 when it is not a single file")),
  url: UrlField,
});
const Milliseconds = v.pipe(v.number(), v.description("Milliseconds"));

/** The video description that HereSphere reads, version 1 of its JSON. The API offers it no changes. */
export const HereSphereManifest = v.pipe(
  v.object({
    access: v.pipe(v.literal(MEMBER), v.description("1: the video may be played")),
    title: TitleField,
    description: DescriptionField,
    thumbnailImage: VrThumbnailUrl,
    dateReleased: v.pipe(v.string(), v.description("Date of release")),
    dateAdded: v.pipe(v.string(), v.description("Date of creation")),
    duration: Milliseconds,
    rating: v.pipe(v.number(), v.description("Rating; always 0")),
    favorites: v.pipe(v.number(), v.description("Number of favorites; always 0")),
    comments: v.pipe(v.number(), v.description("Number of comments; always 0")),
    isFavorite: v.pipe(v.boolean(), v.description("Always false")),
    projection: v.pipe(
      v.picklist([
        ...(["perspective", "equirectangular", "equirectangular360", "fisheye"] as const),
        ...(["cubemap", "equiangularCubemap"] as const),
      ]),
      v.description("Projection, as HereSphere names it"),
    ),
    stereo: describedAs(StereoModeField, v.picklist(["mono", "sbs", "tb"])),
    isEyeSwapped: v.pipe(v.boolean(), v.description("Whether the right eye's view comes first")),
    fov: v.pipe(v.number(), v.description("Degrees")),
    lens: v.pipe(v.picklist(["Linear", "MKX200", "MKX220", "VRCA220"]), v.description("Lens of a fisheye projection")),
    cameraIPD: v.pipe(v.number(), v.description("Distance of the two lenses in millimeters")),
    subtitles: v.pipe(
      v.array(v.object({ name: NameField, language: LanguageField, url: UrlField })),
      v.description("Subtitles"),
    ),
    tags: v.pipe(
      v.array(v.object({ name: NameField, start: Milliseconds, end: Milliseconds })),
      v.description("Chapters, in the form that HereSphere reads"),
    ),
    media: v.pipe(
      v.array(
        v.object({
          name: NameField,
          sources: v.pipe(v.array(Source), v.description("Video files, the largest first")),
        }),
      ),
      v.description("Video files by codec"),
    ),
    writeFavorite: v.pipe(v.boolean(), v.description("Whether the player may store favorites; always false")),
    writeRating: v.pipe(v.boolean(), v.description("Whether the player may store ratings; always false")),
    writeTags: v.pipe(v.boolean(), v.description("Whether the player may store tags; always false")),
    writeHSP: v.pipe(v.boolean(), v.description("Whether the player may store its own settings; always false")),
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
