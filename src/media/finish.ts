import { join } from "node:path";
import { codecNameOf } from "#lib/codecs";
import type { EncodingSpec } from "./encoding-spec.ts";
import { MediaError } from "./error.ts";
import type { Binaries, SourceRun } from "./ffmpeg.ts";
import { largestOf, type ManifestPlan, type Rendition } from "./manifests/renditions.ts";
import { writeManifests } from "./manifests.ts";
import type { Written } from "./package.ts";
import type { EncodePlan } from "./plan.ts";
import { statResult } from "./results.ts";
import { readFromFolder, type SegmentReader } from "./sample-video.ts";
import { writeStaticMp4 } from "./static-mp4.ts";
import { writeStoryboard } from "./storyboard.ts";
import { writeThumbnail } from "./thumbnail.ts";
import type { SkippedTrack } from "./tracks.ts";

/** File names in the output directory; `mp4` is null when no such file is requested. */
export type FileNames = { manifest: string; dash: string; thumbnail: string; storyboard: string; mp4: string | null };
export type RequestedNames = { [Name in keyof FileNames]?: string };

/** The requested names, otherwise the names of the specification. Older servers request an MP4 file by its name alone. */
export const fileNames = (spec: EncodingSpec, requested: RequestedNames = {}): FileNames => ({
  manifest: requested.manifest ?? spec.hls.manifest,
  dash: requested.dash ?? spec.dash.manifest,
  thumbnail: requested.thumbnail ?? spec.thumbnail.name,
  storyboard: requested.storyboard ?? spec.storyboard.name,
  mp4: requested.mp4 ?? (spec.static_mp4.enabled ? spec.static_mp4.name : null),
});

export type EncodeResult = {
  /** File names in `outDir`. */
  manifest: string;
  dash: string;
  thumbnail: string;
  /** Null for audio-only sources, when the specification does not ask for one, and when none could be produced. */
  storyboard: string | null;
  /** Null when not requested, and for audio-only sources. */
  mp4: string | null;
  /** Size of the largest rendition; null for audio-only sources. */
  width: number | null;
  height: number | null;
  durationSeconds: number;
  frameRate: number | null;
  renditions: Rendition[];
  /** Renditions of audio that `renditions` does not contain. */
  audioRenditions: Rendition[];
  /** Every file that was written, relative to `outDir`; manifests last. */
  files: string[];
  bytes: number;
  /** Planned tracks that turned out not to be decodable. */
  skipped: SkippedTrack[];
  /** It ends long before what was measured, which is not known of the source otherwise: its end is damaged. */
  isTruncated: boolean;
};

/** By how much a result may be shorter than what was measured. */
const LEAST_MISSING_SECONDS = 1;
const MISSING_SHARE = 0.02;
const MOST_TOLERATED_SECONDS = 10;

/** Whether a result ends long before its plan. */
export function endsEarly(
  { durationSeconds: planned }: Pick<EncodePlan, "durationSeconds">,
  { durationSeconds }: Pick<EncodeResult, "durationSeconds">,
): boolean {
  if (planned === null) return false;
  const share = Math.min(MOST_TOLERATED_SECONDS, planned * MISSING_SHARE);
  return planned - durationSeconds > Math.max(LEAST_MISSING_SECONDS, share);
}

type FinishOptions = {
  plan: ManifestPlan;
  /** Videos by codec, the primary codec first; the largest of each first. */
  videos: Written[];
  /** The default one first. */
  audios: Written[];
  /** Receives the files; contains the init segments of `videos` and `audios`. */
  outDir: string;
  spec: EncodingSpec;
  names: FileNames;
  binaries: Binaries;
  run: SourceRun;
  /** Where segments are read from; `outDir` by default. */
  read?: SegmentReader;
  /** Planned tracks that nothing was written of. */
  skipped?: SkippedTrack[];
};

/** Writes thumbnails and manifests for segments that are complete. Throws MediaError. */
export async function finish(options: FinishOptions): Promise<EncodeResult> {
  const { plan, videos, audios, outDir, spec, names, binaries, run } = options;
  if (videos.length + audios.length === 0) {
    throw new MediaError("input_invalid", "Nothing in the source could be decoded.", false);
  }
  const read = options.read ?? readFromFolder(outDir);
  // Any player can play the file, and the images do not depend on what else is encoded.
  const primary = videos.filter(({ init }) => codecNameOf(init.codec) === codecNameOf(videos[0]?.init.codec ?? ""));
  const shared = { outDir, spec, videos: primary, ffmpeg: binaries.ffmpeg, run, read };
  const storyboard = spec.storyboard.enabled ? await writeStoryboard({ ...shared, name: names.storyboard }) : null;
  await writeThumbnail({ ...shared, name: names.thumbnail, audios });
  const mp4Bytes = names.mp4 ? await writeStaticMp4({ ...shared, name: names.mp4, audios }) : null;
  const packaged = await writeManifests({ outDir, plan, spec, videos, audios, names, storyboard });
  const top = largestOf(packaged.renditions);
  return {
    ...names,
    width: top?.width ?? null,
    height: top?.height ?? null,
    durationSeconds: Math.round(packaged.durationSeconds * 1000) / 1000,
    frameRate: top?.frame_rate ?? null,
    renditions: packaged.renditions,
    audioRenditions: packaged.audioRenditions,
    storyboard: storyboard?.name ?? null,
    mp4: mp4Bytes === null ? null : names.mp4,
    files: [
      ...packaged.files.slice(0, -2),
      names.thumbnail,
      ...(storyboard ? [storyboard.image, storyboard.name] : []),
      ...(names.mp4 && mp4Bytes !== null ? [names.mp4] : []),
      ...packaged.files.slice(-2),
    ],
    bytes:
      packaged.bytes +
      (await statResult(join(outDir, names.thumbnail))).size +
      (storyboard?.bytes ?? 0) +
      (mp4Bytes ?? 0),
    skipped: options.skipped ?? [],
    isTruncated: false,
  };
}
