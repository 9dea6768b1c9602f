import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, describe, expect, test, vi } from "vitest";
import { encode } from "#media/encode.ts";
import { encodingSpec as spec } from "#media/encoding-spec.ts";
import { Combing } from "#media/fields/combing.ts";
import { probeSource } from "#media/timeline.ts";
import { beeping, picture } from "#test/media/corpus/source.ts";
import { sample } from "#test/support/amount.ts";
import { beepsOf, flashesOf, worstOffset } from "#test/support/media/beeps.ts";
import { PAFF_SIZE, paff } from "#test/support/media/paff.ts";
import { framesToEncode } from "#test/support/media/parallel/frames.ts";
import { planned } from "#test/support/media/parallel/parts.ts";
import { binaries, ffmpeg, temporaryFolder } from "#test/support/media/sources.ts";

/** Video whose fields are stored by themselves: the output has one frame for two of them. */

vi.setConfig({ maxConcurrency: 2 });
const folder = temporaryFolder("field-pictures");
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const SECONDS = 9;
const SIZE = "192x144";

type Row = { name: string; ending: string; size: string; write: (path: string) => Promise<unknown> };

const fieldsOf = (order: "top" | "bottom", aspect = "1/1") => [
  ...[...picture({ size: SIZE, rate: 50, seconds: SECONDS }), ...beeping({ seconds: SECONDS })],
  ...["-vf", `tinterlace=interleave_${order},separatefields,setsar=${aspect}`],
  ...["-c:v", "libx265", "-preset", "ultrafast", "-pix_fmt", "yuv420p", "-c:a", "aac"],
  ...["-x265-params", `log-level=error:keyint=50:interlace=${order === "top" ? "tff" : "bff"}`],
];

const ROWS: Row[] = ["ts", "mkv", "mp4"].flatMap((ending): Row[] => [
  {
    name: "H.264 with each field by itself",
    ending,
    size: PAFF_SIZE,
    write: async (path) => {
      writeFileSync(`${path}.h264`, paff(SECONDS));
      await ffmpeg("-i", `${path}.h264`, ...beeping({ seconds: SECONDS }), "-c:v", "copy", "-c:a", "aac", path);
    },
  },
  { name: "HEVC in fields", ending, size: SIZE, write: (path) => ffmpeg(...fieldsOf("top"), path) },
  {
    name: "HEVC in fields, the bottom one first",
    ending,
    size: SIZE,
    write: (path) => ffmpeg(...fieldsOf("bottom"), path),
  },
  { name: "HEVC with pixels of fields", ending, size: SIZE, write: (path) => ffmpeg(...fieldsOf("top", "1/2"), path) },
]);

/** How the lines of a file's frames fit together. */
async function verdictOf(path: string, size: string): Promise<string> {
  const [width = 0, height = 0] = size.split("x").map(Number);
  const pixels = await ffmpeg("-i", path, "-map", "0:v:0", "-pix_fmt", "gray", "-f", "rawvideo", "-");
  const combing = new Combing(width, height);
  for (let at = 0; at + width * height <= pixels.length; at += width * height)
    combing.add(pixels.subarray(at, at + width * height));
  return combing.verdict();
}

describe.concurrent("fields that are stored by themselves", () => {
  test.each(sample(ROWS, 2).map((row) => [`${row.name} (${row.ending})`, row] as const))("%s", async (_, row) => {
    const input = join(folder, `${ROWS.indexOf(row)}.${row.ending}`);
    await row.write(input);
    const probe = await probeSource(input, binaries);
    const outDir = `${input}-out`;
    const result = await encode({ input, outDir, probe, spec, binaries, scratchDir: folder });
    expect(`${result.width}x${result.height}`).toBe(row.size);
    expect(result.frameRate).toBeCloseTo(25, 1);
    expect(probe.video?.isInterlaced).toBe(true);
    expect(Math.abs(result.durationSeconds - SECONDS)).toBeLessThan(0.15);
    const playlist = join(outDir, "master.m3u8");
    expect(worstOffset(await beepsOf(playlist), await flashesOf(playlist, 25), SECONDS)).toBeLessThan(0.075);
    expect(await verdictOf(join(outDir, result.renditions[0]?.playlist_path ?? ""), row.size)).not.toMatch(/ff$/);
    const { plan, chunks, uncuttable } = await planned(input, 1);
    // A seek may end between two fields, except in a transport stream with H.264.
    expect(uncuttable).toBe(row.size === PAFF_SIZE && row.ending === "ts" ? null : "inexact");
    if (uncuttable !== null) return;
    const parts: string[] = [];
    for (const { first_frame: firstFrame, end_frame: endFrame } of chunks)
      parts.push(
        ...(await framesToEncode(input, plan, { firstFrame, endFrame, seekBackSeconds: plan.seekBackSeconds })),
      );
    expect(parts).toEqual(await framesToEncode(input, plan));
  });
});
