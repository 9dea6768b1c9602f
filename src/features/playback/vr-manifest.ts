import * as v from "valibot";
import { codecNameOf, videoCodecs } from "#lib/codecs";
import { encodingSpec } from "#media/encoding-spec.ts";
import { HeightField, RecordId, TitleField, UrlField } from "#protocol/record-fields.ts";
import type { Db } from "#storage/db/open.ts";
import type { AssetRow } from "#storage/db/schema.ts";
import { chaptersOf } from "../tracks/timed/chapters.ts";
import { StereoModeField, VrThumbnailUrl } from "./record-fields.ts";
import { renditionUrl, variantReference } from "./rendition-url.ts";
import { layoutOf } from "./vr-layout.ts";

const Source = v.object({ resolution: v.nullable(HeightField), url: UrlField });

/**
 * The video description for DeoVR and compatible players; every encoding has its sources under the specified name and
 * under DeoVR's.
 */
export const VrManifest = v.pipe(
  v.object({
    authorized: v.pipe(v.string(), v.description("Whether the request is permitted")),
    fullAccess: v.pipe(v.boolean(), v.description("Whether the whole video may be played")),
    title: TitleField,
    id: RecordId,
    videoLength: v.pipe(v.number(), v.description("Seconds")),
    is3d: v.pipe(v.boolean(), v.description("Whether the video is stereoscopic")),
    screenType: v.pipe(
      v.picklist(["flat", "dome", "sphere", "fisheye", "mkx200", "rf52"]),
      v.description("Projection, as DeoVR names it"),
    ),
    stereoMode: StereoModeField,
    thumbnailUrl: v.nullable(VrThumbnailUrl),
    encodings: v.pipe(
      v.array(
        v.object({
          name: v.pipe(v.string(), v.description("Name of the video codec")),
          "video-sources": v.pipe(v.array(Source), v.description("Video files, the largest first")),
          videoSources: v.pipe(v.array(Source), v.description("Video files, the largest first")),
        }),
      ),
      v.description("Video files by codec"),
    ),
    timeStamps: v.pipe(
      v.optional(
        v.array(
          v.object({
            ts: v.pipe(v.number(), v.description("Start in seconds")),
            name: v.pipe(v.string(), v.description("Name of the chapter")),
          }),
        ),
      ),
      v.description("Chapters"),
    ),
  }),
  v.title("VrManifest"),
);
type Manifest = v.InferInput<typeof VrManifest>;

/** One size of a video. */
export type VrSource = { width: number; height: number; url: string };

/**
 * The renditions of each video codec by the name that VR players have for it, those of the primary one first, largest first.
 * None where `hlsUrl` has only one anyway, and for external media.
 */
export function vrSources(asset: AssetRow, hlsUrl: string): { name: string; sources: VrSource[] }[] {
  const listed = asset.manifestUrl === null ? asset.renditions : [];
  const sized = listed.flatMap((one) => {
    const { name, width, height, codecs } = one;
    const known = Object.values(videoCodecs).find((codec) => codec.name === codecNameOf(codecs));
    if (!known || !width || !height || !variantReference(asset, one)) return [];
    return [{ vrName: known.vrName, source: { width, height, url: renditionUrl(hlsUrl, name) } }];
  });
  if (sized.length < 2) return [];
  const byCodec = [...Map.groupBy(sized, ({ vrName }) => vrName)];
  return byCodec.map(([name, all]) => ({ name, sources: all.map(({ source }) => source) }));
}

/** URLs need no further credentials. Many such players do not support playlists, so a single file precedes them. */
export async function vrManifest(
  db: Db,
  asset: AssetRow,
  { hlsUrl, mp4Url, thumbnailUrl }: { hlsUrl: string; mp4Url: string | null; thumbnailUrl: string | null },
): Promise<Manifest> {
  const primary = videoCodecs[encodingSpec.video.codec].vrName;
  const main = mp4Url ? { resolution: fileSize(asset).height, url: mp4Url } : { resolution: asset.height, url: hlsUrl };
  const all = vrSources(asset, hlsUrl).map(({ name, sources }) => ({
    name,
    sources: sources.map(({ height, url }) => ({ resolution: height, url })),
  }));
  // The file has the bytes of a rendition.
  const others = all
    .filter(({ name }) => name === primary)
    .flatMap(({ sources }) => sources.filter(({ resolution }) => !mp4Url || resolution !== main.resolution));
  const encodings = [{ name: primary, sources: [main, ...others] }, ...all.filter(({ name }) => name !== primary)];
  const { screenType, stereoMode } = layoutOf(asset.tags);
  const timeStamps = await chaptersIn(db, asset);
  return {
    authorized: "1",
    fullAccess: true,
    title: asset.title,
    id: asset.id,
    videoLength: Math.round(asset.durationSeconds),
    is3d: stereoMode !== "off",
    screenType,
    stereoMode,
    thumbnailUrl,
    encodings: encodings.map(({ name, sources }) => ({ name, "video-sources": sources, videoSources: sources })),
    ...(timeStamps.length > 0 && { timeStamps }),
  };
}

/** The file was created from the best rendition within its size limit. */
export const fileSize = ({ renditions, width, height }: AssetRow): { width: number | null; height: number | null } =>
  renditions.find(
    (one) => one.width && one.height && Math.min(one.width, one.height) <= encodingSpec.static_mp4.max_short_side,
  ) ?? { width, height };

/** Whole seconds. */
const chaptersIn = async (db: Db, { id }: AssetRow): Promise<{ ts: number; name: string }[]> =>
  (await chaptersOf(db, id)).map(({ startMs, title }) => ({ ts: Math.floor(startMs / 1000), name: title }));
