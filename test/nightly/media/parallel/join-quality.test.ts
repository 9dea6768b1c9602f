import { rmSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { encode } from "#media/encode.ts";
import { encodingSpec as spec } from "#media/encoding-spec.ts";
import { probeSource as probe } from "#media/timeline.ts";
import { rows } from "#test/support/amount.ts";
import { type JoinQuality, joinQuality } from "#test/support/media/parallel/joins.ts";
import { encodedInParts, planned } from "#test/support/media/parallel/parts.ts";
import { binaries, ffmpeg, temporaryFolder } from "#test/support/media/sources.ts";

const folder = temporaryFolder("join-quality");
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** Much shorter than the default: more joins, and less in which rate control can adapt. */
const CHUNK_SEGMENTS = 2;
/** Noise takes the largest rendition to its maximum bitrate, where a join costs most, and the stronger one both of them. */
const picture = (noise: number) => `testsrc2=s=640x360:r=25:d=40,noise=alls=${noise}:allf=t`;
const GOPS: Record<string, { frames: number; noise: number }> = {
  "2 s": { frames: 50, noise: 6 },
  "10 s": { frames: 250, noise: 9 },
};

describe.each(rows(Object.entries(GOPS), 1))("joins of a source with keyframes every %s", (name, { frames, noise }) => {
  let qualities: JoinQuality[];
  beforeAll(async () => {
    const input = join(folder, `${name}.mp4`);
    const gop = ["-g", String(frames), "-keyint_min", String(frames), "-sc_threshold", "0"];
    const encoder = ["-c:v", "libx264", "-preset", "ultrafast", "-crf", "12", "-pix_fmt", "yuv420p"];
    await ffmpeg("-f", "lavfi", "-i", picture(noise), ...encoder, ...gop, input);
    const dirs = { parts: join(folder, `${name}-parts`), whole: join(folder, `${name}-whole`) };
    const media = await probe(input, binaries);
    await encode({ input, outDir: dirs.whole, spec, binaries, scratchDir: folder, probe: media });
    const parts = await planned(input, CHUNK_SEGMENTS);
    if (!parts.plan.video || parts.uncuttable !== null) throw new Error("The source is not cut.");
    await encodedInParts(input, dirs.parts, parts);
    const joins = parts.chunks.slice(1).map(({ first_frame }) => first_frame);
    expect(joins.length).toBeGreaterThanOrEqual(4);
    const { rate, renditions } = parts.plan.video;
    qualities = [];
    for (const rendition of renditions)
      qualities.push(await joinQuality({ input, rendition, rate, joins, folder, ...dirs }));
    // At the maximum: 0.9 Mbit/s for 40 s.
    expect(qualities[0]?.bits.whole).toBeGreaterThan(0.95 * 0.9e6 * 40);
  });

  test("take no more bits than one run", () => {
    for (const { bits, rendition } of qualities) expect(bits.parts / bits.whole, rendition).toBeLessThanOrEqual(1.01);
  });

  test("have the quality of their surroundings", () => {
    for (const { atJoins, ssim, rendition } of qualities) {
      expect(atJoins, rendition).toBeGreaterThan(0.995);
      expect(ssim.parts / ssim.whole, rendition).toBeGreaterThan(0.995);
    }
  });

  test("do not exceed the decoder's buffer by more than one run does", () => {
    for (const { underflow, late, rendition } of qualities) {
      expect(underflow.parts, rendition).toBeLessThanOrEqual(underflow.whole);
      expect(late.parts, rendition).toBeLessThanOrEqual(late.whole);
    }
  });
});
