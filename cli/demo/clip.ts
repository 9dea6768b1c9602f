import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { audioCodecs, videoCodecs } from "#lib/codecs";
import { cacheDir, resolveBinaries } from "#lib/executable";
import { encodingSpec } from "#media/encoding-spec.ts";
import { run } from "#media/ffmpeg.ts";
import type { Config } from "#platform/config/load.ts";
import { showProgress } from "../progress.ts";
import { HEIGHT, type Layer, sceneLayers, WIDTH } from "./scene.ts";

const FRAME_RATE = 30;
const BT709 = ["-color_primaries", "bt709", "-color_trc", "bt709", "-colorspace", "bt709", "-color_range", "tv"];
/** A quiet chord of A major, in Hz, that swells every five seconds. */
const CHORD = [110, 220, 277.18, 329.63, 440];

type Clip = { folder: string; clip: string; seconds: number };

/** A moving landscape with a chord, generated here: a download may be impossible, and nothing needs to be shipped. */
export async function makeClip(config: Config, { folder, clip, seconds }: Clip): Promise<void> {
  const { ffmpeg } = await resolveBinaries({ ffmpeg: config.ffmpeg, ffprobe: config.ffprobe, cacheDir: cacheDir() });
  const progress = showProgress("Making clip");
  const layers = await sceneLayers();
  for (const { name, image } of layers) await writeFile(join(folder, `${name}.png`), image);
  const { video, audio } = encodingSpec;
  const args = [
    ...["-hide_banner", "-nostdin", "-y", "-progress", "pipe:1"],
    ...["-f", "lavfi", "-i", `color=size=${WIDTH}x${HEIGHT}:rate=${FRAME_RATE}:duration=${seconds},format=yuv444p`],
    ...["-f", "lavfi", "-i", chord(seconds)],
    ...layers.flatMap(({ name }) => ["-i", `file:${name}.png`]),
    ...["-filter_complex", composition(layers), "-map", "[scene]", "-map", "1:a"],
    ...["-c:v", videoCodecs[video.codec].softwareEncoder, "-preset", video.preset, ...BT709],
    ...["-c:a", audioCodecs[audio.codec].encoder, "-b:a", "128k", "-movflags", "+faststart", clip],
  ];
  await run(ffmpeg, {
    args,
    cwd: folder,
    timeLimitMs: 600_000,
    onPosition: (done) => progress.update(Math.min(1, done / seconds)),
  });
  progress.done();
}

/** Layers are converted with the matrix that the clip names, and without subsampling, where a step is two pixels wide. */
function composition(layers: readonly Layer[]): string {
  const converted = "scale=out_color_matrix=bt709:out_range=tv,format=yuva444p";
  const steps = layers.map(({ x, y }, index) => {
    const below = index === 0 ? "0:v" : `below${index}`;
    return `[${index + 2}:v]${converted}[layer${index}];[${below}][layer${index}]overlay=x='${x}':y='${y}':format=yuv444[below${index + 1}]`;
  });
  const tagged = "setparams=color_primaries=bt709:color_trc=bt709:colorspace=bt709:range=tv";
  return `${steps.join(";")};[below${layers.length}]format=${encodingSpec.video.pixel_format},${tagged}[scene]`;
}

function chord(seconds: number): string {
  const tones = CHORD.map((hertz) => `sin(2*PI*${hertz}*t)`).join("+");
  const channel = (phase: number) => `0.05*(${tones})*(0.7+0.3*sin(2*PI*t/5+${phase}))*min(1\\,t)`;
  return `aevalsrc=exprs='${channel(0)}|${channel(1)}':sample_rate=48000:channel_layout=stereo:duration=${seconds}`;
}
