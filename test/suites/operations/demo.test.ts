import { globSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { emptyFolder } from "#test/support/folder.ts";
import { binaries } from "#test/support/media/sources.ts";
import { tool } from "#test/support/pixels.ts";
import { run } from "#test/support/process.ts";

test("a demo that fails stops the server that it started", async () => {
  const cwd = emptyFolder();
  const ffmpeg = join(cwd, "ffmpeg");
  writeFileSync(ffmpeg, `#!/bin/sh\ncase "$*" in *aevalsrc*) exit 1;; esac\nexec ${binaries.ffmpeg} "$@"\n`, {
    mode: 0o755,
  });
  const demo = await run(["demo", "--port", "0"], { cwd, env: { VODBOX_FFMPEG: ffmpeg } });
  expect(demo.stdout).toContain("vodbox ready on http://");
  expect(demo).toMatchObject({ code: 1, signal: null });
  expect(demo.stderr).toMatch(/^vodbox: /m);
});

const TAGS = ["-select_streams", "v:0", "-of", "csv=p=0"];
const TAG_FIELDS = ["-show_entries", "stream=color_range,color_space,color_transfer,color_primaries"];
const ONE_PIXEL = ["-frames:v", "1", "-f", "rawvideo", "-pix_fmt", "rgb24", "-"];

test("the demo is a landscape whose colors are tagged", async () => {
  const cwd = emptyFolder();
  const demo = await run(["demo", "--port", "0", "--once", "--seconds", "2"], { cwd });
  expect(demo.code).toBe(0);
  expect(demo.stdout).toMatch(
    /The server stops now\. After `vodbox serve` the video plays at\s+http:\/\/\S+\/watch\/\S+/,
  );
  const [source = ""] = globSync("**/sources/*.mp4", { cwd });
  const [poster = ""] = globSync("**/thumbnail.jpg", { cwd });
  const tags = (await tool("ffprobe", ...TAG_FIELDS, ...TAGS, join(cwd, source))).toString();
  expect(tags.trim()).toBe("tv,bt709,bt709,bt709");
  // From the top: a dark blue sky, the light of the evening, and dark trees.
  const third = async (number: number) => {
    const average = `crop=iw:ih/3:0:ih/3*${number},scale=1:1`;
    return [...(await tool("ffmpeg", "-i", join(cwd, poster), "-vf", average, ...ONE_PIXEL))];
  };
  const [top, middle, bottom] = [await third(0), await third(1), await third(2)] as [number[], number[], number[]];
  const brightness = (color: number[]) => color.reduce((sum, value) => sum + value, 0);
  expect(top[2]).toBeGreaterThan((top[0] as number) * 0.8);
  expect(middle[0]).toBeGreaterThan((middle[2] as number) * 1.1);
  expect(brightness(middle)).toBeGreaterThan(brightness(bottom) * 1.5);
});
