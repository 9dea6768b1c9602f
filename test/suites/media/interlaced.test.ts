import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, describe, expect, test, vi } from "vitest";
import { encode } from "#media/encode.ts";
import { encodingSpec } from "#media/encoding-spec.ts";
import { Combing } from "#media/fields/combing.ts";
import { probeSource } from "#media/timeline.ts";
import { isNightly, sample } from "#test/support/amount.ts";
import { framesToEncode } from "#test/support/media/parallel/frames.ts";
import { planned, sparseCopy } from "#test/support/media/parallel/parts.ts";
import { binaries, fast, ffmpeg, temporaryFolder } from "#test/support/media/sources.ts";

/** Video whose content is interlaced or not, whatever its headers say. */

vi.setConfig({ maxConcurrency: 2 });
const folder = temporaryFolder("interlaced");
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** One rendition of the size of the source. */
const [top] = encodingSpec.video.ladder as [(typeof encodingSpec.video.ladder)[number]];
const spec = { ...encodingSpec, video: { ...encodingSpec.video, preset: "ultrafast" as const, ladder: [top] } };
const SECONDS = 10;
const moving = (size: string, rate = "50") => ["-f", "lavfi", "-i", `testsrc2=s=${size}:r=${rate}:d=${SECONDS}`];
const SD = moving("720x576");
const fields = (...more: string[]) => ["-vf", ["tinterlace=interleave_top", ...more].join(",")];
const bottomFirst = (...more: string[]) => ["-vf", ["tinterlace=interleave_bottom", ...more].join(",")];
/** Half of the rate: as many frames as there are of two fields. */
const frames = (...more: string[]) => ["-vf", ["framestep=2", ...more].join(",")];
/** From half of the time on. */
const laterFields = (...more: string[]) => [
  "-filter_complex",
  `split[a][b];[a]trim=end=5,framestep=2[p];[b]trim=start=5,setpts=PTS-STARTPTS,tinterlace=interleave_top[i];[p][i]concat,${["setpts=N/25/TB", ...more].join(",")}`,
];
const dv = ["-c:v", "dvvideo", "-pix_fmt", "yuv420p"];
const x264 = [...fast, "-pix_fmt", "yuv420p", "-g", "25"];
const coded = (order: string) => ["-preset", "veryfast", "-pix_fmt", "yuv420p", "-x264-params", `keyint=25:${order}=1`];
const mpeg2 = ["-c:v", "mpeg2video", "-q:v", "3", "-g", "12", "-bf", "2", "-pix_fmt", "yuv420p"];
const flagged = ["-flags", "+ildct+ilme"];
/** The header of a container, or frames, state that the content is progressive. */
const denied = "setfield=prog";

type Row = {
  file: string;
  name: string;
  from: string[];
  /** How it is deinterlaced; null: not at all. */
  fields: "flagged" | "tff" | "bff" | null;
  rate?: number;
};

const ROWS: Row[] = [
  { name: "DV in AVI", file: "dv.avi", from: [...SD, ...bottomFirst(), ...dv], fields: "flagged" },
  { name: "DV in QuickTime", file: "dv.mov", from: [...SD, ...bottomFirst(), ...dv], fields: "flagged" },
  { name: "raw DV", file: "raw.dv", from: [...SD, ...bottomFirst(), ...dv], fields: "flagged" },
  { name: "progressive DV", file: "film.avi", from: [...SD, ...frames(), ...dv], fields: null },
  {
    name: "MPEG-2 that states it",
    file: "stated.ts",
    from: [...SD, ...fields(), ...mpeg2, ...flagged],
    fields: "flagged",
  },
  {
    name: "MPEG-2 with progressive headers",
    file: "denied.mpg",
    from: [...SD, ...fields(denied), ...mpeg2],
    fields: "tff",
  },
  {
    name: "the same, bottom field first",
    file: "bff.mpg",
    from: [...SD, ...bottomFirst(denied), ...mpeg2],
    fields: "bff",
  },
  {
    name: "MPEG-2 that becomes interlaced",
    file: "later.ts",
    from: [...SD, ...laterFields(denied), ...mpeg2],
    fields: "tff",
  },
  // Its frames state that they are progressive, and others may follow.
  { name: "progressive MPEG-2", file: "film.ts", from: [...SD, ...frames(), ...mpeg2], fields: "flagged" },
  {
    name: "progressive MPEG-2 that states fields",
    file: "called.ts",
    from: [...SD, ...frames("setfield=tff"), ...mpeg2, ...flagged],
    fields: null,
  },
  { name: "MBAFF", file: "mbaff.mp4", from: [...SD, ...fields(), ...coded("tff")], fields: "flagged" },
  {
    name: "MBAFF, bottom field first",
    file: "mbaff.mkv",
    from: [...SD, ...bottomFirst(), ...coded("bff")],
    fields: "flagged",
  },
  {
    name: "MBAFF that becomes interlaced",
    file: "later.mkv",
    from: [...SD, ...laterFields("setfield=tff"), ...coded("tff")],
    fields: "flagged",
  },
  {
    name: "H.264 that can have fields, with frames called progressive",
    file: "fake.mp4",
    from: [...moving("1280x540"), ...fields(denied), ...coded("fake-interlaced")],
    fields: "tff",
  },
  {
    name: "H.264 of standard definition, without fields",
    file: "tape.mp4",
    from: [...SD, ...fields(denied), ...x264],
    fields: "tff",
  },
  { name: "progressive H.264", file: "film.mp4", from: [...SD, ...frames(), ...x264], fields: null },
  {
    name: "progressive MBAFF",
    file: "psf.mp4",
    from: [...SD, ...frames("setfield=tff"), ...coded("tff")],
    fields: null,
  },
  { name: "MJPEG", file: "capture.avi", from: [...SD, ...fields(), "-c:v", "mjpeg", "-q:v", "3"], fields: "tff" },
  {
    name: "ProRes that states progressive",
    file: "editor.mov",
    from: [...SD, ...fields(denied), "-c:v", "prores_ks", "-profile:v", "0"],
    fields: "tff",
  },
  { name: "FFV1", file: "archive.mkv", from: [...moving("320x240"), ...fields(denied), "-c:v", "ffv1"], fields: "tff" },
  {
    name: "Huffyuv",
    file: "archive.avi",
    from: [...moving("320x240"), ...fields(), "-c:v", "huffyuv", "-pix_fmt", "yuv422p"],
    fields: "tff",
  },
  {
    name: "MPEG-4 part 2",
    file: "part2.avi",
    from: [...SD, ...fields(denied), "-c:v", "mpeg4", "-q:v", "3"],
    fields: "tff",
  },
  {
    name: "film on NTSC",
    file: "telecine.mpg",
    from: [...moving("720x480", "24"), "-vf", `telecine=pattern=23,${denied}`, ...mpeg2],
    fields: "tff",
    rate: 30,
  },
  {
    name: "VP9",
    file: "web.webm",
    from: [...moving("320x240"), ...fields(), "-c:v", "libvpx-vp9", "-deadline", "realtime", "-cpu-used", "8"],
    fields: null,
  },
];

/** In the full tier one with fields that its headers deny, from half of the time on, and one without fields. */
const FULL = ["MPEG-2 that becomes interlaced", "progressive DV"];

/** Small, long enough that an interlaced part is between the places that are looked at first. */
const SMALL = "320x240";
const part = (seconds: number) => ["-f", "lavfi", "-i", `testsrc2=s=${SMALL}:r=50:d=${seconds}`];
const SHORT_PARTS: { name: string; file: string; parts: string[][] }[] = [
  {
    name: "progressive MPEG-2 with a part of fields",
    file: "part.ts",
    parts: [
      [...part(12.7), ...frames(), ...mpeg2],
      [...part(1.5), ...fields(), ...mpeg2, ...flagged],
      [...part(9.8), ...frames(), ...mpeg2],
    ],
  },
  {
    name: "film that states fields, with fields at the end",
    file: "end.ts",
    parts: [
      [...part(21.6), ...frames("setfield=tff"), ...mpeg2, ...flagged],
      [...part(2.4), ...fields(), ...mpeg2, ...flagged],
    ],
  },
  {
    name: "film that states fields, with a part of fields",
    file: "film-part.mpg",
    parts: [
      [...part(31), ...frames("setfield=tff"), ...mpeg2, ...flagged],
      [...part(3.2), ...fields(), ...mpeg2, ...flagged],
      [...part(5.8), ...frames("setfield=tff"), ...mpeg2, ...flagged],
    ],
  },
];

/** What the lines of a file's frames show, in windows of some frames. */
async function verdicts(path: string, width: number, height: number): Promise<string[]> {
  const pixels = await ffmpeg("-i", path, "-map", "0:v:0", "-pix_fmt", "gray", "-f", "rawvideo", "-");
  const bytes = width * height;
  const window = 25 * bytes;
  return Array.from({ length: Math.floor(pixels.length / window) }, (_, at) => {
    const combing = new Combing(width, height);
    for (let from = at * window; from < (at + 1) * window; from += bytes)
      combing.add(pixels.subarray(from, from + bytes));
    return combing.verdict();
  });
}

describe.concurrent("the content decides what is deinterlaced", () => {
  test.each(ROWS.filter(({ name }) => isNightly || FULL.includes(name)).map((row) => [row.name, row] as const))(
    "%s",
    async (_, { file, from, fields: expected, rate = 25 }) => {
      const input = join(folder, file);
      await ffmpeg(...from, input);
      const probe = await probeSource(input, binaries);
      const { isInterlaced, fieldOrder, isProgressive } = probe.video ?? {};
      expect(isInterlaced ? fieldOrder : null).toBe(expected);
      if (expected !== null) expect(isProgressive).toBe(file === "film.ts");
      const dir = join(folder, `${file}-whole`);
      const result = await encode({ input, outDir: dir, spec, binaries, scratchDir: folder, probe });
      expect(result.frameRate).toBeCloseTo(rate, 1);
      if (!file.endsWith(".webm")) {
        const found = await verdicts(
          join(dir, result.renditions[0]?.playlist_path ?? ""),
          result.width ?? 0,
          result.height ?? 0,
        );
        expect(found.length).toBeGreaterThanOrEqual(SECONDS - 1);
        expect(found.filter((each) => each === "tff" || each === "bff")).toEqual([]);
      }
      const parts = await planned(input, 1, spec);
      if (parts.uncuttable !== null) return expect(["passthrough", "long_gop"]).toContain(parts.uncuttable);
      const { plan, chunks } = parts;
      expect(chunks.length).toBeGreaterThan(1);
      const cut: string[] = [];
      for (const chunk of chunks) {
        const { first_frame: firstFrame, end_frame: endFrame } = chunk;
        const copy = await sparseCopy(input, join(folder, `part-${file}`), parts, chunk);
        const range = { firstFrame, endFrame, seekBackSeconds: plan.seekBackSeconds };
        cut.push(
          ...(await framesToEncode(copy ? join(folder, `part-${file}`) : input, plan, {
            ...range,
            ...(copy && { seekSeconds: copy.seekSeconds }),
          })),
        );
      }
      expect(cut.toSorted()).toEqual((await framesToEncode(input, plan)).toSorted());
    },
  );
});

describe("a part of a source is interlaced", () => {
  test.each(sample(SHORT_PARTS, 1).map((row) => [row.name, row] as const))("%s", async (_, { file, parts }) => {
    const list = join(folder, `${file}.txt`);
    for (const [at, args] of parts.entries()) await ffmpeg(...args, join(folder, `${at}-${file}`));
    writeFileSync(list, parts.map((__, at) => `file '${join(folder, `${at}-${file}`)}'\n`).join(""));
    const input = join(folder, file);
    await ffmpeg("-f", "concat", "-safe", "0", "-i", list, "-c", "copy", input);
    const probe = await probeSource(input, binaries);
    expect(probe.video).toMatchObject({ isInterlaced: true, fieldOrder: "flagged" });
    const dir = join(folder, `${file}-whole`);
    const result = await encode({ input, outDir: dir, spec, binaries, scratchDir: folder, probe });
    const found = await verdicts(join(dir, result.renditions[0]?.playlist_path ?? ""), 320, 240);
    expect(found.filter((each) => each === "tff" || each === "bff")).toEqual([]);
  });
});
