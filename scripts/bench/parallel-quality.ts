import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { encode } from "#media/encode.ts";
import { encodingSpec as spec } from "#media/encoding-spec.ts";
import { probe } from "#media/probe.ts";
import { joinQuality } from "#test/support/media/parallel/joins.ts";
import { encodedInParts, planned } from "#test/support/media/parallel/parts.ts";
import { binaries } from "#test/support/media/sources.ts";
import { childSeconds, workFolder } from "./processes.ts";
import { compare, type Result } from "./result.ts";

const run = promisify(execFile);
/** Options: seconds of the source, segments in a chunk (the default length), a clip of constant frame rate. */
const SECONDS = Number(process.env.VODBOX_BENCH_SECONDS ?? 64);
const SEGMENTS = Number(process.env.VODBOX_BENCH_SEGMENTS ?? 5);
const CLIP = process.env.VODBOX_BENCH_CLIP;
const GOPS = [2, 10];

/** Noise that takes the bitrate of the largest rendition to its maximum. */
const TEST_VIDEO = ["-f", "lavfi", "-i", `testsrc2=size=1280x720:rate=25:duration=${SECONDS},noise=alls=6:allf=t`];

/** The same video for all GOPs. */
async function makeSource(path: string, gopSeconds: number): Promise<void> {
  const frames = String(gopSeconds * 25);
  const gop = ["-g", frames, "-keyint_min", frames, "-sc_threshold", "0"];
  const video = ["-map", "0:v:0", "-c:v", "libx264", "-preset", "ultrafast", "-crf", "8", ...gop];
  const input = CLIP ? ["-i", CLIP, "-vf", "fps=25"] : TEST_VIDEO;
  await run("ffmpeg", ["-nostdin", "-y", "-v", "error", ...input, ...video, "-pix_fmt", "yuv420p", path]);
}

async function timed<T>(work: () => Promise<T>): Promise<{ result: T; seconds: number }> {
  const before = childSeconds();
  const result = await work();
  return { result, seconds: childSeconds() - before };
}

/** Bits, quality at the joins, the decoder's buffer and processor time of parts, against one run of the same source. */
export async function benchParallelQuality(): Promise<Result[]> {
  const work = workFolder();
  try {
    const results: Result[] = [];
    for (const gop of GOPS) {
      const dir = (name: string) => join(work.path, `${name}-${gop}`);
      const input = `${dir("source")}.mp4`;
      await makeSource(input, gop);
      const media = await probe(input, binaries);
      const options = { input, outDir: dir("whole"), spec, binaries, scratchDir: work.path, probe: media };
      const whole = await timed(() => encode(options));
      const plan = await planned(input, SEGMENTS);
      if (plan.uncuttable !== null || !plan.plan.video) throw new Error(`The source is not cut: ${plan.uncuttable}.`);
      const parts = await timed(() => encodedInParts(input, dir("parts"), plan));
      const name = (what: string) => `${CLIP ? "a clip" : "a noisy source"}, GOP of ${gop} s: ${what}`;
      const one = (ours: number, theirs: number) => ({ ours: [ours], theirs: [theirs] });
      const reference = "one run";
      results.push(
        compare(name("processor time"), one(parts.seconds, whole.seconds), {
          reference,
          unit: "s",
          bar: { atMost: gop > 4 ? 1.1 : 1.05 },
        }),
      );
      const { rate, renditions } = plan.plan.video;
      const joins = plan.chunks.slice(1).map(({ first_frame }) => first_frame);
      for (const rendition of renditions) {
        const compared = { input, rate, joins, folder: work.path, parts: dir("parts"), whole: dir("whole") };
        const quality = await joinQuality({ ...compared, rendition });
        const of = (what: string) => name(`${rendition.name}, ${what}`);
        const needed = (underflow: number) => rendition.buffer / rendition.maxBitrate + underflow;
        results.push(
          compare(of("video"), one(quality.bits.parts / 1e6, quality.bits.whole / 1e6), {
            reference,
            unit: "Mbit",
            bar: { atMost: 1.01 },
          }),
          compare(of("SSIM"), one(quality.ssim.parts, quality.ssim.whole), {
            reference,
            unit: "",
            bar: { atLeast: 0.995 },
          }),
          compare(of("SSIM of the second around a join"), one(quality.atJoins, 1), {
            reference: "all other frames, relative to one run",
            unit: "",
            bar: { atLeast: 0.995 },
          }),
          compare(of("decoder buffer needed"), one(needed(quality.underflow.parts), needed(quality.underflow.whole)), {
            reference,
            unit: "s at the cap",
            bar: { atMost: 1 },
          }),
        );
      }
    }
    return results;
  } finally {
    work.remove();
  }
}
