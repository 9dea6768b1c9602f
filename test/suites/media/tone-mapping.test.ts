import { execFileSync } from "node:child_process";
import { readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { encode } from "#media/encode.ts";
import { encodingSpec as spec } from "#media/encoding-spec.ts";
import { probeSource as probe } from "#media/timeline.ts";
import {
  codeOf,
  type Format,
  HEIGHT,
  type Linear,
  patchesOf,
  patchesSource,
  WIDTH,
} from "#test/support/media/hdr-sources.ts";
import { binaries, temporaryFolder } from "#test/support/media/sources.ts";

/** SDR of HDR sources, compared with the published curves: ITU-R BT.2100, BT.2087, BT.1886 and the operator of Hable. */

const folder = temporaryFolder("tone-mapping");
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** cd/m² of the gray ramp, and of the primaries of BT.709, which every SDR display can show. */
const NITS = [1, 10, 50, 100, 203, 500, 1000];
const COLOR_NITS = 100;
/** The limit of their other channels: at 0, half a step of 10-bit chroma is 15 steps of the result. */
const DIM = 0.1;
/** SDR white of ffmpeg's tonemap, in cd/m². */
const WHITE = 100;
/** The peak that ffmpeg's tonemap assumes where the source states none, in cd/m². */
const PEAK = 1000;

/** ITU-R BT.2087-0, table 4, and its inverse. */
const TO_2020 = [
  [0.6274, 0.3293, 0.0433],
  [0.0691, 0.9195, 0.0114],
  [0.0164, 0.088, 0.8956],
] as const;
const TO_709 = [
  [1.6605, -0.5876, -0.0728],
  [-0.1246, 1.1329, -0.0083],
  [-0.0182, -0.1006, 1.1187],
] as const;
const multiplied = (matrix: readonly Linear[], [r, g, b]: Linear): Linear =>
  matrix.map(([x, y, z]) => x * r + y * g + z * b) as unknown as Linear;

/** Display light in cd/m² of BT.2020. */
const LIGHT: Linear[] = [
  ...NITS.map((nits): Linear => [nits, nits, nits]),
  ...(
    [
      [1, DIM, DIM],
      [DIM, 1, DIM],
      [DIM, DIM, 1],
    ] as Linear[]
  ).map((one) => multiplied(TO_2020, one).map((value) => value * COLOR_NITS) as unknown as Linear),
];

/** ITU-R BT.2100, table 5: scene light of a display of 1000 cd/m², whose gamma is 1.2. */
function sceneLight([r, g, b]: Linear): Linear {
  const x = r / 1000;
  const y = g / 1000;
  const z = b / 1000;
  const luminance = 0.2627 * x + 0.678 * y + 0.0593 * z;
  return [x, y, z].map((value) => value / luminance ** (0.2 / 1.2)) as unknown as Linear;
}
const codes = (format: Format) =>
  LIGHT.map((light) =>
    codeOf(format === "hlg" ? sceneLight(light) : (light.map((value) => value / 10_000) as unknown as Linear), format),
  );

/** John Hable, "Filmic Tonemapping Operators" (2010), with the values of "Uncharted 2". */
function hable(x: number): number {
  const a = 0.15;
  const b = 0.5;
  const c = 0.1;
  const d = 0.2;
  const e = 0.02;
  const f = 0.3;
  return (x * (x * a + b * c) + d * e) / (x * (x * a + b) + d * f) - e / f;
}

/** R'G'B' from 0 to 255. The curve is applied to the largest of the channels, and the others keep their ratio to it. */
function expectedOf(light: Linear, peak: number): number[] {
  const linear = multiplied(TO_709, light).map((value) => value / WHITE);
  const largest = Math.max(...linear, 1e-6);
  const factor = hable(largest) / hable(peak / WHITE) / largest;
  return linear.map((value) => 255 * Math.min(1, Math.max(0, value * factor)) ** (1 / 2.4));
}

/** ITU-R BT.709, 3.3 and 3.4, of code values in 8 bit and limited range. */
function rgbOf([y = 0, cb = 0, cr = 0]: number[]): number[] {
  const luma = (y - 16) / 219;
  const blue = (cb - 128) / 224;
  const red = (cr - 128) / 224;
  const r = luma + 1.5748 * red;
  const b = luma + 1.8556 * blue;
  return [r, (luma - 0.2126 * r - 0.0722 * b) / 0.7152, b].map((value) => 255 * Math.min(1, Math.max(0, value)));
}

/**
 * The largest distance, in steps of 255. Y'CbCr in 8 bit has steps of 1.2 to 2.1 in R'G'B', so rounding alone is up to 1; rounding of the source's 10 bit,
 * which is steepest in the dark, the encoder's quantization and the JPEG's add the rest.
 */
const LIMIT = { video: 3, thumbnail: 4 };

type Case = { format: Format; peak: number; parameters?: string };
const CASES: Record<string, Case> = {
  "HDR10 without metadata": { format: "hdr10", peak: PEAK },
  "HDR10 with a content light level": { format: "hdr10", peak: 4000, parameters: "max-cll=4000,400" },
  HLG: { format: "hlg", peak: PEAK },
};

describe.each(Object.entries(CASES))("%s", (name, { format, peak, parameters }) => {
  test("becomes what the curve says, in the video and in the thumbnail", async () => {
    const options = { seconds: 2, ...(parameters && { parameters }) };
    const input = await patchesSource(folder, `${name}.mp4`, format, codes(format), options);
    const outDir = `${input}.out`;
    await encode({ input, outDir, spec, binaries, scratchDir: folder, probe: await probe(input, binaries) });
    const expected = LIGHT.map((light) => expectedOf(light, peak));
    const joined = join(folder, `${name}-joined.mp4`);
    const parts = readdirSync(join(outDir, "360p")).filter((name) => name.endsWith(".m4s"));
    writeFileSync(
      joined,
      Buffer.concat(["init.mp4", ...parts.sort()].map((name) => readFileSync(join(outDir, "360p", name)))),
    );
    const video = (await patchesOf(joined, LIGHT.length, { width: WIDTH, height: HEIGHT, bits: 8 })).map(rgbOf);
    expectNear(video, expected, LIMIT.video);
    expectNear(imagePatches(join(outDir, "thumbnail.jpg")), expected, LIMIT.thumbnail);
  });
});

function expectNear(found: number[][], expected: number[][], limit: number): void {
  const differences = found.flatMap((one, patch) =>
    one.map((value, channel) => Math.abs(value - (expected[patch]?.[channel] ?? Number.NaN))),
  );
  const about = found.map((one, patch) => [one, expected[patch]].map((rgb) => rgb?.map(Math.round)));
  expect(Math.max(...differences), JSON.stringify(about)).toBeLessThanOrEqual(limit);
}

function imagePatches(path: string): number[][] {
  const pixels = execFileSync("ffmpeg", [
    ...[
      "-nostdin",
      "-v",
      "error",
      "-i",
      path,
      "-vf",
      `scale=${WIDTH}:${HEIGHT}`,
      "-f",
      "rawvideo",
      "-pix_fmt",
      "rgb24",
      "-",
    ],
  ]);
  const side = WIDTH / LIGHT.length;
  return LIGHT.map((_, patch) =>
    [0, 1, 2].map((channel) => {
      const values: number[] = [];
      for (let y = HEIGHT / 4; y < (HEIGHT * 3) / 4; y++)
        for (let x = Math.ceil((patch + 0.25) * side); x < (patch + 0.75) * side; x++)
          values.push(pixels[(y * WIDTH + x) * 3 + channel] ?? Number.NaN);
      return values.reduce((sum, value) => sum + value, 0) / values.length;
    }),
  );
}
