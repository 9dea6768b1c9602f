import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { Inexact } from "#media/parallel/inexact.ts";
import { sample } from "#test/support/amount.ts";
import { encodedChunk, planned } from "#test/support/media/parallel/parts.ts";
import { ffmpeg, temporaryFolder } from "#test/support/media/sources.ts";

const folder = temporaryFolder("damaged");
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** Why each chunk of a source is not accepted; null for those that are. */
async function faultsOf(input: string): Promise<(string | null)[]> {
  const { plan, chunks, uncuttable } = await planned(input, 2);
  expect(uncuttable).toBeNull();
  const faults: (string | null)[] = [];
  for (const chunk of chunks) {
    faults.push(
      await encodedChunk(input, plan, chunk).then(
        () => null,
        (error: Error) => {
          expect(error).toBeInstanceOf(Inexact);
          return error.message;
        },
      ),
    );
  }
  return faults;
}

const SOURCES: Record<string, string[]> = {
  "H.264 in MP4": ["h.mp4", "-c:v", "libx264", "-preset", "veryfast", "-g", "50"],
  "H.264 with open GOPs in MP4": [
    "o.mp4",
    "-c:v",
    "libx264",
    "-x264-params",
    "open-gop=1:keyint=50:bframes=3:scenecut=0",
  ],
  "H.264 with open GOPs in a transport stream": [
    "o.ts",
    "-c:v",
    "libx264",
    "-x264-params",
    "open-gop=1:keyint=50:bframes=3",
  ],
  "H.264 that is refreshed by columns": ["r.mp4", "-c:v", "libx264", "-x264-params", "intra-refresh=1:keyint=50"],
  "HEVC with open GOPs": ["v.mp4", "-c:v", "libx265", "-x265-params", "open-gop=1:keyint=50:bframes=4:log-level=none"],
  "MPEG-2 in a program stream": ["m.mpg", "-c:v", "mpeg2video", "-g", "12", "-bf", "2", "-b:v", "1M"],
  "MPEG-4 in AVI": ["m.avi", "-c:v", "mpeg4", "-g", "12", "-bf", "2", "-b:v", "1M"],
};

describe.each(sample(Object.entries(SOURCES), 1))("%s", (_, [file = "", ...encoder]) => {
  test("is encoded in parts, and in one run when its decoder reports faults", async () => {
    const input = join(folder, file);
    await ffmpeg("-f", "lavfi", "-i", "testsrc2=s=320x180:r=25:d=22,noise=alls=10", ...encoder, input);
    expect(await faultsOf(input)).toEqual([null, null, null]);
    const damaged = join(folder, `damaged-${file}`);
    const bytes = readFileSync(input);
    // In the middle third: not the index.
    for (let at = Math.floor(bytes.length / 3); at < (bytes.length * 2) / 3; at += 9001)
      bytes.fill(at & 255, at, at + 40);
    writeFileSync(damaged, bytes);
    const faults = await faultsOf(damaged);
    expect(faults[1]).toContain("cannot be encoded in parts");
  });
});
