import { execFileSync } from "node:child_process";
import { createReadStream, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Readable } from "node:stream";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { encode } from "#media/encode.ts";
import { encodingSpec as spec } from "#media/encoding-spec.ts";
import { still } from "#media/image.ts";
import { probeSource as probe } from "#media/timeline.ts";
import { sample } from "#test/support/amount.ts";
import { binaries, temporaryFolder } from "#test/support/media/sources.ts";

const folder = temporaryFolder("colors");
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/**
 * sRGB; each can be stored in every standard of this test, whose primaries differ. As in browsers (shown-colors.test.ts), the
 * primaries of BT.601 for 525 lines are those of BT.709, and the curve is that of sRGB.
 */
const PATCHES = [
  [220, 40, 40],
  [70, 200, 60],
  [40, 50, 210],
  [128, 128, 128],
  [192, 160, 128],
  [60, 160, 210],
  [235, 235, 235],
  [200, 190, 40],
] as const;
const LIMIT = 4;
/** 320 lines are understood as BT.601 where no colors are stated, 720 as BT.709. */
const SIZES = { sd: { width: 512, height: 320 }, hd: { width: 1280, height: 720 } };
type Size = keyof typeof SIZES;

const systemFfmpeg = (...args: string[]): Buffer =>
  execFileSync("ffmpeg", ["-nostdin", "-v", "error", "-y", ...args], { maxBuffer: 2 ** 28 });

/**
 * The mean of the middle of each patch of an image of `tile` pixels at the top left of `path`: in a single pixel of a
 * small JPEG, compression is as strong as the differences that are looked for.
 */
function colorsOf(path: string, tile: { width: number; height: number }): number[][] {
  const crop = `crop=${tile.width}:${tile.height}:0:0,format=rgb24`;
  const pixels = systemFfmpeg("-i", path, "-frames:v", "1", "-vf", crop, "-f", "rawvideo", "-");
  const side = tile.width / PATCHES.length;
  return PATCHES.map((_, patch) =>
    [0, 1, 2].map((channel) => {
      const values: number[] = [];
      for (let y = Math.ceil(tile.height / 4); y < (tile.height * 3) / 4; y++)
        for (let x = Math.ceil((patch + 0.25) * side); x < (patch + 0.75) * side; x++)
          values.push(pixels[(y * tile.width + x) * 3 + channel] ?? Number.NaN);
      return values.reduce((sum, value) => sum + value, 0) / values.length;
    }),
  );
}

function expectTrue(found: number[][], what: string) {
  const farthest = Math.max(
    ...found.flatMap((one, patch) => one.map((value, channel) => Math.abs(value - (PATCHES[patch]?.[channel] ?? 0)))),
  );
  expect(farthest, `${what}: ${JSON.stringify(found)}`).toBeLessThanOrEqual(LIMIT);
}

type Case = {
  size: Size;
  to: string;
  format: string;
  tags: string[];
  encoder?: string[];
  /** What the renditions state: matrix, transfer function and primaries. */
  states: string;
};

const BT709 = "tv,bt709,bt709,bt709";
const BT601 = "tv,smpte170m,smpte170m,smpte170m";

const x264 = ["-c:v", "libx264", "-preset", "veryfast", "-crf", "4"];
const stated = (matrix: string, primaries: string, transfer: string, range = "tv") => [
  ...["-colorspace", matrix, "-color_primaries", primaries, "-color_trc", transfer, "-color_range", range],
];
const CASES: Record<string, Case> = {
  "BT.709": {
    states: BT709,
    size: "sd",
    to: "m=709:p=709:t=iec61966-2-1:r=limited",
    format: "yuv420p",
    tags: stated("bt709", "bt709", "bt709"),
  },
  "BT.601 of 525 lines": {
    states: BT601,
    size: "sd",
    to: "m=170m:p=709:t=iec61966-2-1:r=limited",
    format: "yuv420p",
    tags: stated("smpte170m", "smpte170m", "smpte170m"),
  },
  "BT.601 of 625 lines, in HD": {
    states: "tv,bt470bg,smpte170m,bt470bg",
    size: "hd",
    to: "m=470bg:p=bt470bg:t=iec61966-2-1:r=limited",
    format: "yuv420p",
    tags: stated("bt470bg", "bt470bg", "smpte170m"),
  },
  "BT.2020": {
    states: BT709,
    size: "sd",
    to: "m=2020_ncl:p=2020:t=iec61966-2-1:r=limited",
    format: "yuv420p10le",
    tags: stated("bt2020nc", "bt2020", "bt2020-10"),
  },
  "full range": {
    states: BT709,
    size: "hd",
    to: "m=709:p=709:t=iec61966-2-1:r=full",
    format: "yuv420p",
    tags: stated("bt709", "bt709", "bt709", "pc"),
  },
  "full range of BT.601": {
    states: BT601,
    size: "sd",
    to: "m=170m:p=709:t=iec61966-2-1:r=full",
    format: "yuvj420p",
    tags: stated("smpte170m", "smpte170m", "smpte170m", "pc"),
  },
  "untagged SD": {
    size: "sd",
    to: "m=170m:p=709:t=iec61966-2-1:r=limited",
    format: "yuv420p",
    tags: [],
    states: BT601,
  },
  "untagged HD": { size: "hd", to: "m=709:p=709:t=iec61966-2-1:r=limited", format: "yuv420p", tags: [], states: BT709 },
  RGB: {
    states: BT709,
    size: "sd",
    to: "m=gbr:p=709:t=iec61966-2-1:r=full",
    format: "gbrp",
    tags: [],
    encoder: ["-c:v", "libx264rgb", "-preset", "veryfast", "-crf", "4"],
  },
};

let picture: Record<Size, string>;
beforeAll(() => {
  const made = (size: Size) => {
    const { width, height } = SIZES[size];
    const line = Buffer.alloc(width * 3);
    for (let x = 0; x < width; x++)
      line.set(PATCHES[Math.floor((x * PATCHES.length) / width)] as unknown as number[], x * 3);
    const path = join(folder, `${size}.rgb`);
    writeFileSync(path, Buffer.concat(Array.from({ length: height }, () => line)));
    return path;
  };
  picture = { sd: made("sd"), hd: made("hd") };
});

/** 2 s of the patches. */
function source(name: string, { size, to, format, tags, encoder = x264 }: Case): string {
  const { width, height } = SIZES[size];
  const input = ["-f", "rawvideo", "-pix_fmt", "rgb24", "-s", `${width}x${height}`, "-r", "25"];
  const srgb = "format=gbrp,setparams=colorspace=gbr:color_primaries=bt709:color_trc=iec61966-2-1:range=pc";
  // Without tags the encoder must not learn them from the filters.
  const untagged = "setparams=colorspace=unknown:color_primaries=unknown:color_trc=unknown:range=unknown";
  const last = tags.length > 0 ? [] : [untagged];
  const filters = [srgb, ...(format === "gbrp" ? [] : [`zscale=${to}`]), `format=${format}`, ...last].join(",");
  const path = join(folder, `${name}.mkv`);
  systemFfmpeg(
    ...[
      "-stream_loop",
      "49",
      ...input,
      "-i",
      picture[size],
      "-vf",
      filters,
      "-frames:v",
      "50",
      ...tags,
      ...encoder,
      path,
    ],
  );
  return path;
}

describe.each(sample(Object.entries(CASES), 2))("%s", (name, one) => {
  test("keeps its colors in the poster, the storyboard and images of a moment", async () => {
    const input = source(name, one);
    const outDir = `${input}.out`;
    const result = await encode({
      input,
      outDir,
      spec,
      binaries,
      scratchDir: folder,
      probe: await probe(input, binaries),
    });
    const poster = join(outDir, "thumbnail.jpg");
    const size = JSON.parse(
      execFileSync("ffprobe", [
        "-v",
        "error",
        "-show_entries",
        "stream=width,height",
        "-of",
        "json",
        poster,
      ]).toString(),
    ).streams[0];
    expectTrue(colorsOf(poster, size), "poster");
    const vtt = readFileSync(join(outDir, "storyboard.vtt"), "utf8");
    const [, width = 0, height = 0] = (/xywh=0,0,(\d+),(\d+)/.exec(vtt) ?? []).map(Number);
    expectTrue(colorsOf(join(outDir, "storyboard-1.jpg"), { width, height }), "storyboard");

    // ffprobe's order is range, matrix, transfer function, primaries.
    const entries = [
      "-show_entries",
      "stream=color_range,color_space,color_transfer,color_primaries",
      "-of",
      "csv=p=0",
    ];
    for (const { name } of result.renditions.filter(({ width }) => width !== null)) {
      const file = join(folder, "rendition.mp4");
      writeFileSync(
        file,
        Buffer.concat(["init.mp4", "00001.m4s"].map((part) => readFileSync(join(outDir, name, part)))),
      );
      const states = execFileSync("ffprobe", ["-v", "error", ...entries, file])
        .toString()
        .trim();
      expect(states, name).toBe(one.states);
    }
    const [rendition] = result.renditions;
    const init = readFileSync(join(outDir, String(rendition?.name), "init.mp4"));
    for (const format of ["jpg", "png", "webp"] as const) {
      const segment = createReadStream(join(outDir, String(rendition?.name), "00001.m4s"));
      const input = Readable.from(
        (async function* () {
          yield init;
          yield* segment;
        })(),
        { objectMode: false },
      );
      const image = await still(
        { input, kind: "video", init },
        { offsetSeconds: 0.5, box: { width: null, height: null, fit: "preserve" }, format },
        { ffmpeg: binaries.ffmpeg, cwd: folder },
      );
      const path = join(folder, `still.${format}`);
      writeFileSync(path, image);
      expectTrue(colorsOf(path, SIZES[one.size]), format);
    }
  });
});
