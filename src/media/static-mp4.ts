import { rm } from "node:fs/promises";
import { join } from "node:path";
import type { EncodingSpec } from "./encoding-spec.ts";
import { run, type SourceRun, UNTIL_STALLED, untrustedInput } from "./ffmpeg.ts";
import type { Written } from "./package.ts";
import { makeFolder, statResult } from "./results.ts";
import { type SegmentReader, writeSampleVideo } from "./sample-video.ts";

type StaticMp4Options = {
  outDir: string;
  /** Relative to `outDir`. */
  name: string;
  spec: EncodingSpec;
  /** Largest first. */
  videos: Written[];
  /** The default one first. */
  audios: Written[];
  ffmpeg: string;
  run: SourceRun;
  read: SegmentReader;
};

/**
 * Writes one MP4 file from the best rendition within the limit and the first audio track, for players without HLS; its
 * index is at the beginning, or at the end. Nothing is encoded: it consists of the segments' bytes. Returns its size; null
 * for audio-only sources.
 */
export async function writeStaticMp4(options: StaticMp4Options): Promise<number | null> {
  const { outDir, name, spec, videos, audios, ffmpeg, run: common, read } = options;
  const limit = spec.static_mp4.max_short_side;
  const video = videos.find(({ init }) => Math.min(init.width, init.height) <= limit) ?? videos.at(-1);
  if (!video) return null;
  const cwd = join(common.cwd, "mp4");
  await makeFolder(cwd);
  const parts = [video, ...audios.slice(0, 1)];
  for (const { name: rendition, segments } of parts)
    await writeSampleVideo({ name: rendition, segments, read }, join(cwd, `${rendition}.mp4`));
  await run(ffmpeg, {
    ...common,
    cwd,
    args: [
      ...["-nostdin", "-hide_banner", "-y", "-loglevel", "error", "-progress", "pipe:1", "-nostats"],
      ...parts.flatMap((part) => untrustedInput(join(cwd, `${part.name}.mp4`))),
      ...parts.flatMap((_, index) => ["-map", String(index)]),
      ...["-c", "copy", "-map_metadata", "-1", ...(spec.static_mp4.fast_start ? ["-movflags", "+faststart"] : [])],
      // Otherwise the muxer leaves out `st3d` and `sv3d`, because they are not of ISO.
      ...["-strict", "unofficial"],
      ...["-f", "mp4", `file:${join(outDir, name)}`],
    ],
    ...UNTIL_STALLED,
  });
  await rm(cwd, { recursive: true, force: true });
  return (await statResult(join(outDir, name))).size;
}
