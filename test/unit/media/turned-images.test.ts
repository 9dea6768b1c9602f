import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { Readable } from "node:stream";
import { expect, test } from "vitest";
import { rotationOf } from "#features/playback/images/image-request.ts";
import { still } from "#media/image.ts";
import { emptyFolder } from "#test/support/folder.ts";
import { binaries } from "#test/support/media/sources.ts";
import { tool } from "#test/support/pixels.ts";

const RED = "255 0 0";
const LIME = "0 255 0";
const BLUE = "0 0 255";
const WHITE = "255 255 255";

/** The colors in the corners: the first one is that at the top left. */
test.each([
  ["", [RED, LIME, BLUE, WHITE]],
  ["rotate=90", [BLUE, RED, WHITE, LIME]],
  ["rotate=180", [WHITE, BLUE, LIME, RED]],
  ["rotate=270", [LIME, WHITE, RED, BLUE]],
  ["flip_h=true", [LIME, RED, WHITE, BLUE]],
  ["flip_v=true", [BLUE, WHITE, RED, LIME]],
  ["rotate=90&flip_h=true", [RED, BLUE, LIME, WHITE]],
])("an image is turned by %s", async (query, corners) => {
  const quarter = (color: string) => ["-f", "lavfi", "-i", `color=${color}:s=64x64:d=1`];
  const tiled = "[0][1]hstack[top];[2][3]hstack[bottom];[top][bottom]vstack";
  const inputs = ["red", "lime", "blue", "white"].flatMap(quarter);
  const image = await tool(
    "ffmpeg",
    ...inputs,
    "-filter_complex",
    tiled,
    "-frames:v",
    "1",
    "-f",
    "image2pipe",
    "-c:v",
    "png",
    "-",
  );
  const ffmpeg = binaries.ffmpeg;
  const turned = await still(
    { input: Readable.from([image]), kind: "image" },
    {
      offsetSeconds: 0,
      box: { width: null, height: null, fit: "preserve" },
      rotation: rotationOf(new URLSearchParams(query)),
      format: "png",
    },
    { ffmpeg, cwd: emptyFolder() },
  );
  const file = join(emptyFolder(), "turned.png");
  writeFileSync(file, turned);
  const pixels = await tool(
    "ffmpeg",
    "-i",
    file,
    "-vf",
    "scale=2:2:flags=area",
    "-f",
    "rawvideo",
    "-pix_fmt",
    "rgb24",
    "-",
  );
  const shown = [0, 3, 6, 9].map((at) =>
    [...pixels.subarray(at, at + 3)].map((value) => (value > 127 ? 255 : 0)).join(" "),
  );
  expect(shown).toEqual(corners);
});
