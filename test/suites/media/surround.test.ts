import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import HLS from "hls-parser";
import { parse as parseMpd } from "mpd-parser";
import * as v from "valibot";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { rangeOfAudio } from "#features/transcoding/tasks/audio-parts.ts";
import { encode } from "#media/encode.ts";
import { BUILT_IN_PROFILES, specOf } from "#media/encoding-profiles.ts";
import type { EncodingSpec } from "#media/encoding-spec.ts";
import type { EncodeResult } from "#media/finish.ts";
import { encodeAudio } from "#media/parallel/audio.ts";
import { encodeAudioPart } from "#media/parallel/audio-part.ts";
import { planSource } from "#media/parallel/plan-source.ts";
import { indexOfFile } from "#media/parallel/source-index.ts";
import { parsePlan } from "#media/parallel/stored-plan.ts";
import { segmentName } from "#media/parallel/written-rows.ts";
import { probeSource as probe } from "#media/timeline.ts";
import type { ProfileDefinition } from "#protocol/encoding-profile.ts";
import { EncodingSpec as SpecSchema } from "#protocol/encoding-spec.ts";
import type { WrittenRendition } from "#protocol/task.ts";
import { audioCodecs } from "#src/lib/codecs/registry.ts";
import { binaries, complaints, fast, ffmpeg, ffprobe, picture, temporaryFolder } from "#test/support/media/sources.ts";
import { nightly } from "#test/support/nightly.ts";

const folder = temporaryFolder("surround");
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const RATE = 48_000;
const SECONDS = 9;
/** A factor of amplitude. */
const MINUS_3_DB = Math.SQRT1_2;
/** A tone for each channel, by the names of ffmpeg. */
const TONES = { FL: 300, FR: 500, FC: 700, LFE: 60, SL: 1100, SR: 1300, BL: 1700, BR: 1900 } as const;
type Channel = keyof typeof TONES;
const FIVE_ONE: Channel[] = ["FL", "FR", "FC", "LFE", "SL", "SR"];
const SEVEN_ONE: Channel[] = ["FL", "FR", "FC", "LFE", "BL", "BR", "SL", "SR"];
const tones = (channels: readonly Channel[], layout: string, seconds = SECONDS) => [
  ...["-f", "lavfi", "-i"],
  `aevalsrc=${channels.map((name) => `0.2*sin(${TONES[name]}*2*PI*t)`).join("|")}:c=${layout}:s=${RATE}:d=${seconds}`,
];

const specWith = (fields: Partial<ProfileDefinition> = {}, audio: Partial<ProfileDefinition["audio"]> = {}) =>
  specOf(
    {
      ...BUILT_IN_PROFILES.default.definition,
      audio: { ...BUILT_IN_PROFILES.default.definition.audio, channels: 6, ...audio },
      ...fields,
    },
    null,
  );

let count = 0;
type Made = EncodeResult & { dir: string; input: string };
async function made(name: string, args: string[], spec: EncodingSpec = specWith()): Promise<Made> {
  const input = join(folder, `${++count}-${name}`);
  await ffmpeg(...args, input);
  const dir = `${input}.out`;
  const media = await probe(input, binaries);
  return { ...(await encode({ input, outDir: dir, probe: media, spec, binaries, scratchDir: folder })), dir, input };
}
const film = (...audio: string[]) => [...picture("320x180", "25", SECONDS), ...audio, ...fast, "-pix_fmt", "yuv420p"];

const playlist = ({ dir }: Pick<Made, "dir">, name: string) => join(dir, name, "playlist.m3u8");
const master = ({ dir, manifest }: Pick<Made, "dir" | "manifest">) => readFileSync(join(dir, manifest), "utf8");
const lengths = (of: Made, name: string) =>
  [...readFileSync(playlist(of, name), "utf8").matchAll(/#EXTINF:([\d.]+)/g)].map(([, seconds]) => seconds);
const probed = async (path: string, entries: string) =>
  (await ffprobe("-select_streams", "a", "-show_entries", entries, "-of", "csv=p=0", path)).split("\n")[0];

/** Samples of each channel of a file, of the second from `at` on. */
async function channelsOf(path: string, count: number, at = 2): Promise<Float32Array[]> {
  const cut = ["-af", `atrim=start=${at}:end=${at + 1}`];
  const bytes = await ffmpeg("-i", path, "-map", "0:a:0", ...cut, "-c:a", "pcm_f32le", "-f", "f32le", "-");
  const all = new Float32Array(bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length));
  expect(all.length).toBe(RATE * count);
  return Array.from({ length: count }, (_, channel) => all.filter((_, at) => at % count === channel));
}

/** The amplitude of a tone in a second of samples. */
function amplitude(samples: Float32Array, hertz: number): number {
  let real = 0;
  let imaginary = 0;
  for (const [index, value] of samples.entries()) {
    const angle = (2 * Math.PI * hertz * index) / RATE;
    real += value * Math.cos(angle);
    imaginary += value * Math.sin(angle);
  }
  return (2 * Math.hypot(real, imaginary)) / samples.length;
}

/** The tones in each channel, with their amplitudes relative to those of the source. */
const heard = (channels: readonly Float32Array[]) =>
  channels.map((samples) =>
    Object.fromEntries(
      Object.entries(TONES).flatMap(([name, hertz]) => {
        const level = amplitude(samples, hertz) / 0.2;
        return level > 0.05 ? [[name, level]] : [];
      }),
    ),
  );
const about = (levels: Partial<Record<Channel, number>>) =>
  Object.fromEntries(Object.entries(levels).map(([name, level]) => [name, expect.closeTo(level, 1)]));
const ALONE = FIVE_ONE.map((name) => about({ [name]: 1 }));
const DOWNMIX = [about({ FL: 1, FC: MINUS_3_DB, SL: MINUS_3_DB }), about({ FR: 1, FC: MINUS_3_DB, SR: MINUS_3_DB })];

describe("a video with 5.1", () => {
  let result: Made;
  beforeAll(async () => {
    result = await made("film.mov", film(...tones(FIVE_ONE, "5.1(side)"), "-c:a", "ac3", "-b:a", "640k"));
  });

  test("has a stereo rendition and one in 5.1", async () => {
    expect(result.renditions.map(({ name }) => name)).toEqual(["180p"]);
    expect(result.audioRenditions).toMatchObject([
      { name: "audio", codecs: "mp4a.40.2", playlist_path: "audio/playlist.m3u8" },
      { name: "surround", codecs: "mp4a.40.2", playlist_path: "surround/playlist.m3u8" },
    ]);
    const show = "stream=codec_name,profile,channels,channel_layout,sample_rate";
    expect(await probed(playlist(result, "audio"), show)).toBe("aac,LC,48000,2,stereo");
    expect(await probed(playlist(result, "surround"), show)).toBe("aac,LC,48000,6,5.1");
    for (const { name, bytes } of result.audioRenditions) expect(bytes, name).toBeGreaterThan(10_000);
  });

  test("has each tone in its own channel", async () => {
    expect(heard(await channelsOf(playlist(result, "surround"), 6))).toEqual(ALONE);
  });

  test("has all channels but that of low frequencies in stereo", async () => {
    expect(heard(await channelsOf(playlist(result, "audio"), 2))).toEqual(DOWNMIX);
  });

  test("has segments of the same times in both, without faults", async () => {
    expect(lengths(result, "surround")).toEqual(lengths(result, "audio"));
    expect(lengths(result, "surround")).toHaveLength(3);
    for (const name of ["audio", "surround"])
      expect(await complaints("-i", playlist(result, name), "-f", "null", "-"), name).toBe("");
    expect(await complaints("-i", join(result.dir, result.manifest), "-map", "0", "-f", "null", "-")).toBe("");
    expect(await complaints("-i", join(result.dir, result.dash), "-map", "0", "-f", "null", "-")).toBe("");
  });

  test("lists variants of stereo first, and those of 5.1 with their own bitrate", () => {
    const lines = master(result).split("\n");
    expect(lines.filter((line) => line.startsWith("#EXT-X-MEDIA:"))).toEqual([
      '#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="audio",NAME="Audio 1",DEFAULT=YES,AUTOSELECT=YES,CHANNELS="2",URI="audio/playlist.m3u8"',
      '#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="audio-surround",NAME="Audio 1",DEFAULT=YES,AUTOSELECT=YES,CHANNELS="6",URI="surround/playlist.m3u8"',
    ]);
    const { variants } = HLS.parse(master(result)) as unknown as {
      variants: {
        isIFrameOnly?: boolean;
        uri: string;
        bandwidth: number;
        averageBandwidth: number;
        codecs: string;
        audio: { uri: string; groupId: string }[];
      }[];
    };
    const [stereo, surround, ...more] = variants.filter((one) => !one.isIFrameOnly);
    expect(more).toEqual([]);
    expect(stereo).toMatchObject({ uri: "180p/playlist.m3u8", audio: [{ uri: "audio/playlist.m3u8" }] });
    expect(surround).toMatchObject({ uri: "180p/playlist.m3u8", audio: [{ uri: "surround/playlist.m3u8" }] });
    expect(surround?.codecs).toBe(stereo?.codecs);
    const [video] = result.renditions;
    expect(stereo).toMatchObject({ bandwidth: video?.bandwidth, averageBandwidth: video?.average_bandwidth });
    const [two, six] = result.audioRenditions;
    const more51 = (name: "bandwidth" | "average_bandwidth") => (six?.[name] ?? 0) - (two?.[name] ?? 0);
    expect(Math.abs((surround?.bandwidth ?? 0) - (stereo?.bandwidth ?? 0) - more51("bandwidth"))).toBeLessThan(3);
    expect(
      Math.abs((surround?.averageBandwidth ?? 0) - (stereo?.averageBandwidth ?? 0) - more51("average_bandwidth")),
    ).toBeLessThan(3);
    expect(more51("bandwidth")).toBeGreaterThan(100_000);
  });

  test("has a DASH set of six channels, which players prefer less", () => {
    const text = readFileSync(join(result.dir, result.dash), "utf8");
    const sets = [...text.matchAll(/<AdaptationSet[^>]* contentType="audio"[\s\S]*?<\/AdaptationSet>/g)].map(
      ([set]) => ({
        priority: / selectionPriority="(\d+)"/.exec(set)?.[1],
        role: /<Role [^>]*value="(\w+)"/.exec(set)?.[1],
        id: /<Representation id="([^"]+)"/.exec(set)?.[1],
        channels: /audio_channel_configuration:2011" value="(\d+)"/.exec(set)?.[1],
      }),
    );
    expect(sets).toEqual([
      { priority: "2", role: "main", id: "audio", channels: "2" },
      { priority: "1", role: "alternate", id: "surround", channels: "6" },
    ]);
    const mpd = parseMpd(text, { manifestUri: "http://host/base/manifest.mpd" });
    expect(Math.abs(mpd.duration - SECONDS)).toBeLessThan(0.1);
  });
});

test("more channels are mixed down to 5.1", async () => {
  const result = await made("film.mkv", film(...tones(SEVEN_ONE, "7.1"), "-c:a", "flac"));
  // The back channels stay where they are.
  expect(heard(await channelsOf(playlist(result, "surround"), 6))).toEqual([
    ...ALONE.slice(0, 4),
    about({ BL: 1, SL: MINUS_3_DB }),
    about({ BR: 1, SR: MINUS_3_DB }),
  ]);
});

test.each([
  ["stereo", ["FL", "FR"] as Channel[], "stereo"],
  ["five channels", ["FL", "FR", "FC", "SL", "SR"] as Channel[], "5.0(side)"],
])("%s are not distributed to more channels", async (_, channels, layout) => {
  const result = await made("film.mkv", film(...tones(channels, layout), "-c:a", "flac"));
  expect(result.audioRenditions.map(({ name }) => name)).toEqual(["audio"]);
  expect(master(result)).not.toContain("surround");
  expect(readFileSync(join(result.dir, result.dash), "utf8")).not.toMatch(/contentType="audio"[^>]*selectionPriority/);
});

test("5.1 is left out of profiles that do not require it", async () => {
  const spec = specWith({}, { channels: 2 });
  expect(spec.audio).toEqual(specOf(BUILT_IN_PROFILES.default.definition, null).audio);
  const result = await made("film.mkv", film(...tones(FIVE_ONE, "5.1(side)"), "-c:a", "flac"), spec);
  expect(result.audioRenditions.map(({ name }) => name)).toEqual(["audio"]);
});

nightly("both groups have the same languages: stereo takes the place of 5.1 that a track does not have", async () => {
  const tracks = [...tones(["FL", "FR"], "stereo"), ...tones(FIVE_ONE, "5.1(side)")];
  const languages = ["-metadata:s:a:0", "language=deu", "-metadata:s:a:1", "language=eng"];
  const map = ["-map", "0", "-map", "1", "-map", "2"];
  const result = await made("film.mkv", [...film(...tracks), ...map, "-c:a", "flac", ...languages]);
  expect(result.audioRenditions.map(({ name }) => name)).toEqual(["audio", "audio-2", "surround-2"]);
  const listed = [
    ...master(result).matchAll(/GROUP-ID="([^"]+)",NAME="([^"]+)",LANGUAGE="(\w+)",DEFAULT=(\w+).*URI="([^"/]+)/g),
  ];
  expect(listed.map(([, ...values]) => values)).toEqual([
    ["audio", "German", "de", "YES", "audio"],
    ["audio", "English", "en", "NO", "audio-2"],
    ["audio-surround", "German", "de", "YES", "audio"],
    ["audio-surround", "English", "en", "NO", "surround-2"],
  ]);
  expect(heard(await channelsOf(playlist(result, "surround-2"), 6))).toEqual(ALONE);
});

nightly("audio alone has both", async () => {
  const result = await made("song.m4a", [...tones(FIVE_ONE, "5.1"), "-c:a", "aac", "-b:a", "500k"]);
  expect(result.renditions).toMatchObject([{ name: "audio", width: null }]);
  expect(result.audioRenditions).toMatchObject([{ name: "surround", width: null }]);
  const uris = [...master(result).matchAll(/AUDIO="([^"]+)"\n(\S+)/g)].map(([, group, uri]) => [group, uri]);
  expect(uris).toEqual([
    ["audio", "audio/playlist.m3u8"],
    ["audio-surround", "surround/playlist.m3u8"],
  ]);
  expect(heard(await channelsOf(playlist(result, "surround"), 6))).toEqual(ALONE);
});

nightly("the MP4 file has stereo, and the source of a copied video is not copied as 5.1", async () => {
  const gop = ["-x264-params", "keyint=50:min-keyint=50:scenecut=0", "-bf", "0", "-crf", "30", "-profile:v", "high"];
  const source = [
    ...picture("640x360", "25", SECONDS),
    ...tones(FIVE_ONE, "5.1"),
    ...fast,
    "-pix_fmt",
    "yuv420p",
    ...gop,
  ];
  const ladder = [360, 180].map((height) => ({ height, max_bitrate: height * 8000 }));
  const result = await made(
    "copied.mp4",
    [...source, "-c:a", "aac", "-b:a", "300k"],
    specWith({ ladder, static_mp4: true }),
  );
  const packets = (path: string) =>
    ffmpeg("-i", path, "-map", "0:v:0", "-c", "copy", "-bsf:v", "h264_mp4toannexb", "-f", "md5", "-");
  expect(await packets(playlist(result, "360p"))).toEqual(await packets(result.input));
  expect(await probed(join(result.dir, result.mp4 as string), "stream=channels")).toBe("2");
  expect(heard(await channelsOf(playlist(result, "surround"), 6))).toEqual(ALONE);
});

nightly("both are encoded again with the video, when a frame of its copy is damaged", async () => {
  const gop = ["-x264-params", "keyint=50:min-keyint=50:scenecut=0", "-bf", "0", "-crf", "30", "-profile:v", "high"];
  const source = [...picture("640x360", "25", SECONDS), ...tones(FIVE_ONE, "5.1"), ...fast, "-pix_fmt", "yuv420p"];
  const input = join(folder, "damaged.mp4");
  await ffmpeg(...source, ...gop, "-c:a", "aac", "-b:a", "300k", input);
  const packets = await ffprobe("-select_streams", "v", "-show_entries", "packet=pos,size", "-of", "csv=p=0", input);
  const frames = packets
    .split("\n")
    .filter(Boolean)
    .map((line) => line.split(",").map(Number) as [number, number]);
  // A frame of the second half, without the length of its NAL unit.
  const [size, position] = frames[150] as [number, number];
  const bytes = readFileSync(input);
  writeFileSync(input, bytes.fill(0xa5, position + 5, position + size));
  const ladder = [360, 180].map((height) => ({ height, max_bitrate: height * 8000 }));
  const dir = `${input}.out`;
  const common = { input, outDir: dir, binaries, scratchDir: folder, probe: await probe(input, binaries) };
  const result = await encode({ ...common, spec: specWith({ ladder }) });
  const names = (all: readonly { name: string }[]) => all.map(({ name }) => name);
  expect(names(result.renditions)).toEqual(["360p", "180p"]);
  expect(names(result.audioRenditions)).toEqual(["audio", "surround"]);
  const groups = [...master({ ...result, dir }).matchAll(/GROUP-ID="([^"]+)".*URI="([^"/]+)/g)].map(
    ([, ...one]) => one,
  );
  expect(groups).toEqual([
    ["audio", "audio"],
    ["audio-surround", "surround"],
  ]);
  // A copy would have the damaged frame.
  expect(await complaints("-i", join(dir, result.manifest), "-map", "0", "-f", "null", "-")).toBe("");
  expect(heard(await channelsOf(playlist({ dir }, "surround"), 6))).toEqual(ALONE);
});

test("stereo and 5.1 both get the loudness that the profile requires", async () => {
  const loud = { loudness: { target_lufs: -16 } };
  const result = await made("film.mkv", film(...tones(FIVE_ONE, "5.1(side)"), "-c:a", "flac"), specWith({}, loud));
  for (const name of ["audio", "surround"]) {
    const summary = await complaints("-v", "info", "-i", playlist(result, name), "-af", "ebur128", "-f", "null", "-");
    const [, lufs] = /I:\s+(-[\d.]+) LUFS/.exec(summary.slice(summary.lastIndexOf("Summary:"))) ?? [];
    expect(Math.abs(Number(lufs) + 16), `${name} ${lufs}`).toBeLessThan(0.6);
  }
});

nightly("audio in parts has the packets of one run in both, and its plan is stored with them", async () => {
  const input = join(folder, "long.mov");
  const seconds = 33;
  await ffmpeg(
    ...["-f", "lavfi", "-i", `testsrc2=s=64x36:r=5:d=${seconds}`, ...tones(FIVE_ONE, "5.1(side)", seconds)],
    ...[...fast, "-g", "25", "-c:a", "ac3", "-b:a", "640k", input],
  );
  const spec = specWith();
  const runs = { cwd: folder, reads: [input], writes: [folder] };
  const index = await indexOfFile(input);
  const planned = await planSource({ input, probe: await probe(input, binaries), spec, binaries, run: runs, index });
  expect(planned).toMatchObject({ uncuttable: null, early: { audio_step: 2 } });
  const plan = parsePlan(JSON.parse(JSON.stringify(planned.plan)));
  const [whole, inParts] = ["audio-whole", "audio-parts"].map((name) => join(folder, name)) as [string, string];
  for (const directory of [whole, inParts]) mkdirSync(directory);
  const common = { input, plan, spec, binaries, run: runs };
  const once = await encodeAudio({ ...common, outDir: whole });
  expect(once.map(({ name }) => name)).toEqual(["audio", "surround"]);
  const parts: WrittenRendition[] = [];
  for (const [number, from, to] of [
    [0, 0, 4],
    [1, 4, null],
  ] as const) {
    const range = rangeOfAudio({ number, from, to });
    const part = { range, step: 2, workDir: join(folder, "work") };
    parts.push(...(await encodeAudioPart({ ...common, outDir: inParts }, part)));
  }
  for (const { name, init, segments } of once) {
    const own = parts.filter((one) => one.name === name);
    const times = (all: typeof segments) => all.map(([, start, duration]) => [start, duration]);
    expect(times(own.flatMap((one) => one.segments)), name).toEqual(times(segments));
    expect(new Set([init, ...own.map((one) => one.init)].map(({ sha256 }) => sha256)).size, name).toBe(1);
  }
  const joined = join(folder, "joined.mp4");
  const names = ["init.mp4", ...(once[1]?.segments ?? []).map((_, index) => segmentName(index))];
  writeFileSync(joined, Buffer.concat(names.map((name) => readFileSync(join(inParts, "surround", name)))));
  // In both parts.
  for (const at of [2, 20]) expect(heard(await channelsOf(joined, 6, at)), `${at}`).toEqual(ALONE);
});

test("a packet of silence in 5.1 decodes to silence", async () => {
  const packet = audioCodecs.aac.silentPacket("mp4a.40.2", 6) as Buffer;
  // ADTS (ISO/IEC 13818-7, 6.2): AAC-LC, 48 kHz, channelConfiguration 6.
  const length = packet.length + 7;
  const header = Buffer.from([
    0xff,
    0xf1,
    0x4d,
    0x80 | (length >> 11),
    (length >> 3) & 0xff,
    ((length & 7) << 5) | 31,
    252,
  ]);
  const path = join(folder, "silence.aac");
  writeFileSync(path, Buffer.concat(Array.from({ length: 60 }, () => [header, packet]).flat()));
  // Such a stream does not state its duration.
  const lines = (await complaints("-i", path, "-f", "null", "-")).split("\n");
  expect(lines.filter((line) => line !== "" && !line.includes("Estimating duration"))).toEqual([]);
  const samples = await channelsOf(path, 6, 0);
  expect(samples.every((channel) => channel.every((value) => value === 0))).toBe(true);
});

test("a specification of 5.1 states its bitrate", () => {
  const spec = specWith({}, { bitrate: 96_000 });
  expect(spec.audio).toMatchObject({ channels: 6, bitrate: 96_000, surround_bitrate: 240_000 });
  expect(v.parse(SpecSchema, spec).audio).toEqual(spec.audio);
  const { surround_bitrate: _, ...without } = spec.audio;
  expect(v.safeParse(SpecSchema, { ...spec, audio: without }).success).toBe(false);
});
