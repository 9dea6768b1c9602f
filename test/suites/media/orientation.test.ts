import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { encode } from "#media/encode.ts";
import { encodingSpec as spec } from "#media/encoding-spec.ts";
import { probeSource } from "#media/timeline.ts";
import { binaries, fast, ffmpeg, temporaryFolder } from "#test/support/media/sources.ts";

/** The display matrix of a source (ISO/IEC 14496-12, 8.3.2) applies as a whole: it rotates and mirrors. */

const folder = temporaryFolder("orientation");
const plain = join(folder, "plain.mp4");
const WIDTH = 96;
const HEIGHT = 64;
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** A color in each corner. */
beforeAll(async () => {
  const corner = (color: string) => ["-f", "lavfi", "-i", `color=${color}:s=${WIDTH / 2}x${HEIGHT / 2}:r=25:d=1`];
  const graph = "[0][1]hstack[t];[2][3]hstack[b];[t][b]vstack";
  await ffmpeg(
    ...["white", "red", "lime", "blue"].flatMap(corner),
    ...["-filter_complex", graph, ...fast, "-pix_fmt", "yuv420p", plain],
  );
});

type Matrix = [a: number, b: number, c: number, d: number];

/** Writes a copy whose track header has this matrix. */
function withMatrix(name: string, matrix: Matrix): string {
  const data = readFileSync(plain);
  const [a, b, c, d] = matrix.map((value) => Math.round(value * 65536)) as Matrix;
  const at = data.indexOf("tkhd") + 4 + 40;
  for (const [index, value] of [a, b, 0, c, d, 0, 0, 0, 1 << 30].entries()) data.writeInt32BE(value, at + 4 * index);
  const path = join(folder, `${name}.mp4`);
  writeFileSync(path, data);
  return path;
}

const COLORS: Record<string, [number, number, number]> = {
  white: [255, 255, 255],
  red: [255, 0, 0],
  lime: [0, 255, 0],
  blue: [0, 0, 255],
};
const nearest = (found: readonly number[]) =>
  Object.entries(COLORS).toSorted(([, a], [, b]) => distance(a, found) - distance(b, found))[0]?.[0];
const distance = (a: readonly number[], b: readonly number[]) =>
  a.reduce((sum, value, index) => sum + (value - (b[index] as number)) ** 2, 0);

/** The colors at the top left, top right, bottom left and bottom right. */
async function cornersOf(path: string, width: number, height: number): Promise<(string | undefined)[]> {
  const frame = await ffmpeg("-i", path, "-frames:v", "1", "-f", "rawvideo", "-pix_fmt", "rgb24", "-");
  const at = (x: number, y: number) => {
    const offset = 3 * (Math.floor(y * height) * width + Math.floor(x * width));
    return nearest([...frame.subarray(offset, offset + 3)]);
  };
  return [at(0.25, 0.25), at(0.75, 0.25), at(0.25, 0.75), at(0.75, 0.75)];
}

test.each([
  ["none", [1, 0, 0, 1], ["white", "red", "lime", "blue"]],
  ["clockwise", [0, 1, -1, 0], ["lime", "white", "blue", "red"]],
  ["upside down", [-1, 0, 0, -1], ["blue", "lime", "red", "white"]],
  ["counterclockwise", [0, -1, 1, 0], ["red", "blue", "white", "lime"]],
  ["left and right changed", [-1, 0, 0, 1], ["red", "white", "blue", "lime"]],
  ["top and bottom changed", [1, 0, 0, -1], ["lime", "blue", "white", "red"]],
  ["transposed", [0, 1, 1, 0], ["white", "lime", "red", "blue"]],
  ["transposed along the other diagonal", [0, -1, -1, 0], ["blue", "red", "lime", "white"]],
  ["mirrored and enlarged", [-2, 0, 0, 2], ["red", "white", "blue", "lime"]],
] as [string, Matrix, string[]][])("%s", async (name, matrix, corners) => {
  const input = withMatrix(name.replaceAll(" ", "-"), matrix);
  const probe = await probeSource(input, binaries);
  const outDir = join(folder, `${name}-out`);
  const { renditions } = await encode({ input, outDir, spec, binaries, scratchDir: folder, probe });
  const isSideways = matrix[0] === 0;
  const [top] = renditions;
  expect([top?.width, top?.height]).toEqual(isSideways ? [HEIGHT, WIDTH] : [WIDTH, HEIGHT]);
  const path = join(outDir, top?.playlist_path as string);
  expect(await cornersOf(path, top?.width as number, top?.height as number)).toEqual(corners);
});
