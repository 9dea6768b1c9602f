import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, describe, expect, test, vi } from "vitest";
import { encode } from "#media/encode.ts";
import { encodingSpec as spec } from "#media/encoding-spec.ts";
import { planSource } from "#media/parallel/plan-source.ts";
import { parsePlan } from "#media/parallel/stored-plan.ts";
import { probe } from "#media/probe.ts";
import { warningsOf } from "#media/tracks.ts";
import { writeReplicated } from "#test/media/corpus/implicit-aac.ts";
import { encodedInParts, planned } from "#test/support/media/parallel/parts.ts";
import { binaries, fast, ffmpeg, picture, sound, temporaryFolder } from "#test/support/media/sources.ts";
import { nightly } from "#test/support/nightly.ts";

vi.setConfig({ maxConcurrency: 2 });

const folder = temporaryFolder("formats");
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const words = (text: string) => text.split(" ");
const video = picture("64x36", "25", 1);
const audio = sound(1);
const both = [...video, ...audio];
const dirac = words("-c:v vc2 -strict -2 -pix_fmt yuv422p10");
const h264 = [...fast, "-pix_fmt", "yuv420p"];
const jpeg2000 = words("-c:v jpeg2000 -pix_fmt yuv420p");
const cineform = words("-c:v cfhd -pix_fmt yuv422p10");

type Source = string[] | ((path: string) => Promise<void>);

async function made(file: string, source: Source): Promise<string> {
  const path = join(folder, file);
  await (typeof source === "function" ? source(path) : ffmpeg(...source, path));
  return path;
}

/** A file in which each of these texts is another one of the same length. */
const altered =
  (args: string[], from: string, to: string): Source =>
  async (path) => {
    await ffmpeg(...args, path);
    const text = readFileSync(path).toString("latin1");
    expect(text).toContain(from);
    writeFileSync(path, Buffer.from(text.replaceAll(from, to), "latin1"));
  };

/** What is left of a source in one run, and in the plan of its parts. */
async function encoded(input: string) {
  const media = await probe(input, binaries);
  const outDir = `${input}-out`;
  const result = await encode({ input, outDir, probe: media, spec, binaries, scratchDir: folder });
  const run = { cwd: folder, reads: [input], writes: [folder] };
  const { plan } = await planSource({ input, probe: media, spec, binaries, run });
  const stored = parsePlan(JSON.parse(JSON.stringify(plan)));
  const warnings = [...warningsOf(media), ...warningsOf(result)].map(({ message }) => message);
  const tracks = [...(result.frameRate === null ? [] : ["video"]), ...(media.audio.length > 0 ? ["audio"] : [])];
  return { result, tracks, warnings, stored };
}

describe.concurrent("a container with a codec", () => {
  const dv = (system: string): Source => [
    ...["-f", "lavfi", "-i", "testsrc2=s=720x576:r=25:d=1", "-f", "lavfi", "-i", "sine=d=1:r=48000"],
    ...["-pix_fmt", "yuv420p", "-target", system],
  ];
  const rows: [file: string, source: Source, tracks: string[]][] = [
    ["animation.gif", video, ["video"]],
    ["endless.gif", [...video, "-loop", "0"], ["video"]],
    ["animation.apng", [...video, "-f", "apng"], ["video"]],
    ["animation.png", [...video, "-f", "apng", "-plays", "0"], ["video"]],
    ["transparent.png", [...video, "-pix_fmt", "rgba", "-f", "apng"], ["video"]],
    ["pal.dv", dv("pal-dv"), ["video", "audio"]],
    ["ntsc.dv", dv("ntsc-dv"), ["video", "audio"]],
    ["cineform.mov", [...both, ...cineform, "-c:a", "pcm_s16le"], ["video", "audio"]],
    ["cineform.avi", [...both, ...cineform, "-c:a", "pcm_s16le"], ["video", "audio"]],
    ["cineform.mkv", [...both, ...cineform, "-c:a", "flac"], ["video", "audio"]],
    ["cineform-alpha.mov", [...video, ...words("-c:v cfhd -pix_fmt gbrap12")], ["video"]],
    ["jpeg2000.mov", [...both, ...jpeg2000, "-c:a", "aac"], ["video", "audio"]],
    ["jpeg2000.mp4", [...both, ...jpeg2000, "-c:a", "aac"], ["video", "audio"]],
    ["jpeg2000.avi", [...both, ...jpeg2000, "-c:a", "mp2"], ["video", "audio"]],
    ["jpeg2000.mkv", [...both, ...jpeg2000, "-c:a", "aac"], ["video", "audio"]],
    ["jpeg2000.mxf", [...both, ...jpeg2000, ...words("-c:a pcm_s16le -ar 48000")], ["video", "audio"]],
    ["jpeg2000-10.mxf", [...video, ...words("-c:v jpeg2000 -pix_fmt yuv422p10")], ["video"]],
    ["s302m.ts", [...both, ...h264, ...words("-c:a s302m -strict -2 -ar 48000 -ac 2")], ["video", "audio"]],
    [
      "s302m-24.ts",
      [...both, ...words("-c:v mpeg2video -c:a s302m -strict -2 -ar 48000 -ac 6 -sample_fmt s32")],
      ["video", "audio"],
    ],
  ];
  test.each(rows)("%s plays", async (file, source, tracks) => {
    const { result, stored, ...seen } = await encoded(await made(file, source));
    expect(seen).toEqual({ tracks, warnings: [] });
    expect(Math.abs(result.durationSeconds - 1)).toBeLessThan(0.15);
    expect(stored.warnings).toEqual([]);
    expect(result.audioRenditions.length + result.renditions.length).toBeGreaterThan(0);
  });
});

const SKIPPED = (number: number, kind: string, codec: string) =>
  `Track ${number} (${kind}, ${codec}) cannot be decoded and was left out.`;

test.each([
  ["stereo", true, 15],
  ["mono", false, 0],
])("what the decoder finds decides on channels, not the header: %s", async (name, hasStereo, apart) => {
  const input = join(folder, `implicit-${name}.mp4`);
  const adts = join(folder, `implicit-${name}.aac`);
  await writeReplicated(adts, { rate: 22_050, hasStereo });
  await ffmpeg("-i", adts, "-c", "copy", input);
  const { result } = await encoded(input);
  const playlist = join(`${input}-out`, result.renditions[0]?.playlist_path ?? "");
  const channels = await ffmpeg("-i", playlist, "-ac", "2", "-ar", "8000", "-f", "s16le", "-");
  const samples = new Int16Array(channels.buffer, channels.byteOffset, channels.length >> 1);
  const energy = [0, 1].map((side) => samples.reduce((sum, one, at) => (at % 2 === side ? sum + one * one : sum), 0));
  const decibels = 10 * Math.log10((energy[0] as number) / Math.max(1, energy[1] as number));
  if (hasStereo) expect(decibels).toBeGreaterThan(apart);
  else expect(Math.abs(decibels)).toBeLessThan(0.5);
});

describe.concurrent("a track that cannot be decoded is left out", () => {
  const rows: [file: string, source: Source, plays: "video" | "audio", warning: string][] = [
    ["dirac.ts", [...both, ...dirac, "-c:a", "aac"], "audio", SKIPPED(1, "video", "dirac")],
    ["dirac.mkv", [...both, ...dirac, "-c:a", "aac"], "audio", SKIPPED(1, "video", "dirac")],
    ["dirac.mov", [...both, ...dirac, "-c:a", "aac"], "audio", SKIPPED(1, "video", "dirac")],
    ["dirac.avi", [...both, ...dirac, "-c:a", "pcm_s16le"], "audio", SKIPPED(1, "video", "dirac")],
    ["zmbv.avi", [...both, ...words("-c:v zmbv -c:a mp2")], "audio", SKIPPED(1, "video", "zmbv")],
    ["jpegls.avi", [...both, ...words("-c:v jpegls -c:a mp2")], "audio", SKIPPED(1, "video", "jpegls")],
    ["flashsv.flv", [...both, ...words("-c:v flashsv -c:a aac")], "audio", SKIPPED(2, "video", "flashsv")],
    ["tta.mkv", [...both, ...h264, "-c:a", "tta"], "video", SKIPPED(2, "audio", "tta")],
    ["wavpack.mkv", [...both, ...h264, "-c:a", "wavpack"], "video", SKIPPED(2, "audio", "wavpack")],
    [
      "g723.avi",
      [...both, ...h264, ...words("-c:a g723_1 -ar 8000 -ac 1 -b:a 6300")],
      "video",
      SKIPPED(2, "audio", "g723_1"),
    ],
    [
      "g723.mov",
      [...both, ...h264, ...words("-c:a g723_1 -ar 8000 -ac 1 -b:a 6300")],
      "video",
      SKIPPED(2, "audio", "g723_1"),
    ],
    [
      "unknown-audio.mov",
      altered([...both, ...h264, "-c:a", "pcm_s16le"], "sowt", "xowt"),
      "video",
      SKIPPED(2, "audio", "xowt"),
    ],
    [
      "unknown-video.mov",
      altered([...both, ...words("-c:v mjpeg -pix_fmt yuvj420p -c:a aac")], "jpeg", "xpeg"),
      "audio",
      SKIPPED(1, "video", "xpeg"),
    ],
    [
      "unknown-audio.mkv",
      altered([...both, ...h264, "-c:a", "aac"], "A_AAC", "A_XXX"),
      "video",
      SKIPPED(2, "audio", "unknown codec"),
    ],
    [
      "unknown-video.mkv",
      altered([...both, ...h264, "-c:a", "aac"], "V_MPEG4/ISO/AVC", "V_XXXXX/ISO/AVC"),
      "audio",
      SKIPPED(1, "video", "unknown codec"),
    ],
    [
      "unknown-video.avi",
      altered([...both, ...words("-c:v mpeg4 -c:a mp2")], "FMP4", "<b>x"),
      "audio",
      SKIPPED(1, "video", "unknown codec"),
    ],
    [
      "damaged-audio.mkv",
      [...both, ...h264, ...words("-c:a aac -bsf:a noise=amount=1")],
      "video",
      SKIPPED(2, "audio", "aac"),
    ],
    [
      "damaged-video.mkv",
      [...both, ...words("-c:v vp8 -bsf:v noise=amount=1 -c:a aac")],
      "audio",
      SKIPPED(1, "video", "vp8"),
    ],
  ];
  test.each(rows)("%s", async (file, source, plays, warning) => {
    const { result, stored, warnings } = await encoded(await made(file, source));
    expect(warnings).toEqual([warning]);
    expect(result.frameRate === null ? "audio" : "video").toBe(plays);
    expect(result.renditions.every(({ width }) => (width !== null) === (plays === "video"))).toBe(true);
    expect(Math.abs(result.durationSeconds - 1)).toBeLessThan(0.3);
    if (!file.startsWith("damaged")) expect(stored.warnings.map(({ message }) => message)).toEqual([warning]);
  });

  test("of several that play", async () => {
    const tracks = words("-map 0 -map 1 -map 1 -map 1 -map 0 -c:a:0 tta -c:a:1 aac -c:a:2 wavpack -c:v:0 zmbv");
    const source = [...both, ...tracks, ...words("-c:v:1 libx264 -preset:v:1 ultrafast -pix_fmt:v:1 yuv420p")];
    const { result, warnings } = await encoded(await made("several.mkv", source));
    expect(warnings).toEqual([SKIPPED(1, "video", "zmbv"), SKIPPED(2, "audio", "tta"), SKIPPED(4, "audio", "wavpack")]);
    expect(result.renditions[0]?.codecs).toMatch(/^avc1\..*mp4a/);
  });

  nightly("also where it is encoded in parts", async () => {
    const source = [...picture("64x36", "5", 22), ...sound(22), "-map", "0", "-map", "1", "-map", "1"];
    const input = await made("parts.mkv", [...source, ...h264, "-g", "5", ...words("-c:a:0 aac -c:a:1 tta")]);
    const parts = await planned(input, 2);
    expect(parts.uncuttable).toBeNull();
    expect(parts.plan.warnings).toEqual([{ code: "track_skipped", message: SKIPPED(3, "audio", "tta") }]);
    const result = await encodedInParts(input, `${input}-parts`, parts);
    expect(result).toMatchObject({ skipped: [], width: 64 });
    expect(result.renditions[0]?.codecs).toContain("mp4a");
  });
});

describe.concurrent("a source whose end is missing plays to there", () => {
  const TRUNCATED = expect.stringContaining("its end is missing");
  const long = [...picture("64x36", "25", 4), ...sound(4), ...h264, "-g", "10"];
  const cut =
    (args: string[]): Source =>
    async (path) => {
      await ffmpeg(...args, path);
      const whole = readFileSync(path);
      writeFileSync(path, whole.subarray(0, Math.round(whole.length / 2)));
    };
  const rows: [file: string, args: string[], isStated?: boolean][] = [
    ["mkv", [...long, "-c:a", "aac"]],
    ["mp4", [...long, ...words("-c:a aac -movflags +faststart")]],
    ["mov", [...long, ...words("-c:a pcm_s16le -movflags +faststart")]],
    ["fragments.mp4", [...long, ...words("-c:a aac -movflags +frag_keyframe+empty_moov")]],
    ["avi", [...long, ...words("-c:a mp2")]],
    ["wav", sound(4)],
    ["webm", [...picture("64x36", "25", 4), ...words("-c:v libvpx")]],
    // Their containers do not state how long the file is.
    ["ts", [...long, "-c:a", "aac"], false],
    ["live.mkv", [...long, ...words("-c:a aac -live 1")], false],
  ];
  test.each(rows)("%s", async (name, args, isStated = true) => {
    const { warnings, result } = await encoded(await made(`half.${name}`, cut(args)));
    expect(warnings).toEqual(isStated ? [TRUNCATED] : []);
    expect(result.durationSeconds).toBeGreaterThan(1);
    expect((await probe(await made(`whole.${name}`, args), binaries)).isTruncated).toBe(false);
  });
});

describe.concurrent("a declared track without packets does not exist", () => {
  // The bitstream filter drops every packet of one track.
  const drop = (kind: string) => [`-bsf:${kind}`, "noise=drop=1"];
  const rows: [file: string, args: string[], plays: "video" | "audio"][] = ["mkv", "webm", "avi", "ts"].flatMap(
    (container): [string, string[], "video" | "audio"][] => {
      const codecs = container === "webm" ? words("-c:v libvpx -c:a libopus") : [...h264, ...words("-c:a mp2")];
      return [
        [`no-video.${container}`, [...both, ...codecs, ...drop("v")], "audio"],
        [`no-audio.${container}`, [...both, ...codecs, ...drop("a")], "video"],
      ];
    },
  );
  test.each(rows)("%s", async (file, args, plays) => {
    const { result, tracks, warnings } = await encoded(await made(file, args));
    expect(tracks).toEqual([plays]);
    expect(warnings).toEqual([]);
    expect(result.renditions.length).toBeGreaterThan(0);
  });

  test("and reading all of the source for it is progress", async () => {
    let moves = 0;
    const input = await made("moves.mkv", [...both, ...h264, ...words("-c:a mp2"), ...drop("v")]);
    const { video, audio } = await probe(input, binaries, { onMove: () => moves++ });
    expect([video, audio.length]).toEqual([null, 1]);
    expect(moves).toBeGreaterThan(0);
  });

  test("but one that begins late does", async () => {
    const args = [...picture("64x36", "25", 8), ...words("-itsoffset 6"), ...sound(1)];
    const { tracks } = await encoded(await made("late.mkv", [...args, ...h264, "-c:a", "aac"]));
    expect(tracks).toEqual(["video", "audio"]);
  });
});

describe.concurrent("a source of which nothing can be decoded", () => {
  const one = [...video, "-frames:v", "1"];
  const rows: [file: string, source: Source, message: RegExp][] = [
    [
      "both.mkv",
      [...both, ...words("-c:v zmbv -c:a tta")],
      /matroska.*track 1 \(video, zmbv\), track 2 \(audio, tta\)/,
    ],
    ["video.ts", [...video, ...dirac], /mpegts.*video, dirac/],
    ["video.mov", [...video, ...dirac], /mov.*video, dirac/],
    ["audio.mka", [...audio, "-c:a", "wavpack"], /matroska.*audio, wavpack/],
    ["audio.tta", audio, /TTA/],
    ["audio.wv", audio, /WavPack/],
    ["video.y4m", [...video, "-pix_fmt", "yuv420p"], /YUV4MPEG2/],
    ["video.nut", [...video, ...h264], /NUT/],
    ["video.ivf", [...video, "-c:v", "libvpx"], /IVF/],
    ["video.h264", [...video, ...h264], /h264/],
    ["audio.ac3", [...audio, "-c:a", "ac3"], /ac3/],
    ["one.gif", one, /still image \(gif\)/],
    ["one.apng", [...one, "-f", "apng"], /still image/],
    ...["png", "jpg", "webp", "bmp", "tiff", "jp2", "dpx", "exr"].map((kind): [string, Source, RegExp] => [
      `image.${kind}`,
      one,
      /still image/,
    ]),
    ["image.avif", [...one, ...words("-c:v libaom-av1 -cpu-used 8")], /still image \(AVIF\)/],
  ];
  test.each(rows)("%s is an unsupported format", async (file, source, message) => {
    const path = await made(file, source);
    await expect(encoded(path)).rejects.toMatchObject({
      code: "unsupported_format",
      message: expect.stringMatching(message),
      retryable: false,
    });
  });

  const damaged: [file: string, source: Source][] = [
    ["zeros.mp4", async (path) => writeFileSync(path, Buffer.alloc(10_000))],
    ["torn.mp4", altered([...both, ...h264, "-c:a", "aac"], "moov", "xxxx")],
    ["noise.mkv", [...both, ...h264, ...words("-c:a aac -bsf noise=amount=1")]],
    ["empty.mkv", [...both, ...h264, ...words("-c:a aac -bsf noise=drop=1")]],
  ];
  test.each(damaged)("%s is damaged", async (file, source) => {
    await expect(encoded(await made(file, source))).rejects.toMatchObject({ code: "input_invalid", retryable: false });
  });
});
