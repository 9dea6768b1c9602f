import { readdirSync, readFileSync, rmSync } from "node:fs";
import { join, relative } from "node:path";
import { afterAll, expect, test } from "vitest";
import { type EncodingSpec, encodingSpec } from "#media/encoding-spec.ts";
import { aac } from "#src/lib/codecs/aac.ts";
import { av1 } from "#src/lib/codecs/av1.ts";
import { h264 } from "#src/lib/codecs/h264.ts";
import { hevc } from "#src/lib/codecs/hevc.ts";
import {
  additionalVideoCodecs,
  audioCodecs,
  codecOfSampleEntry,
  encodableAudioCodecs,
  primaryVideoCodecs,
  videoCodecs,
} from "#src/lib/codecs/registry.ts";
import { joinSegments, readFirstSample, readInit, readSegmentTimes } from "#src/lib/isobmff/segments.ts";
import { av1 as libaom, words } from "#test/support/media/matrix-sources.ts";
import { ffmpeg, ffprobe, picture, sound, temporaryFolder } from "#test/support/media/sources.ts";
import { fc } from "#test/support/property.ts";

const folder = temporaryFolder("codecs");
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** Path and content of a fragmented MP4 file. */
async function fragmented(name: string, args: string[]): Promise<{ path: string; data: Buffer }> {
  const path = join(folder, `${name.replaceAll(/\W/g, "-")}.mp4`);
  await ffmpeg(...args, ...words("-movflags +delay_moov+default_base_moof+frag_keyframe+global_sidx"), path);
  return { path, data: readFileSync(path) };
}

const bytes = (hex: string) => Buffer.from(hex.replaceAll(" ", ""), "hex");
const small = picture("320x180", "25", 0.2);
const x264 = (profile: string, level: string) => [
  ...words(`-c:v libx264 -pix_fmt yuv420p -profile:v ${profile} -level ${level}`),
];
const x265 = (params: string, ...more: string[]) => [
  ...words("-c:v libx265 -preset ultrafast -x265-params"),
  `log-level=error:${params}`,
  ...more,
];

// The expected strings follow from the encoder's options, by ISO/IEC 14496-15, Annex E and the AV1 binding. x265 marks
// progressive frames (0x80) and frames only (0x10).
test.each<[string, string[], string, Record<string, unknown>]>([
  ["H.264 High 3.1", [...small, ...x264("high", "3.1")], "avc1.64001f", { profile: "High", level: 31 }],
  ["H.264 Main 4.2", [...small, ...x264("main", "4.2")], "avc1.4d402a", { profile: "Main", level: 42 }],
  // Level 1b, which is 9 in the file.
  ["H.264 High 1b", [...small, ...x264("high", "1b")], "avc1.64000b", { profile: "High", level: 9 }],
  ["HEVC Main 3.1", [...small, ...x265("level-idc=31", ...words("-tag:v hvc1"))], "hvc1.1.6.L93.90", { level: 93 }],
  ["HEVC with parameter sets in samples", [...small, ...x265("level-idc=31")], "hev1.1.6.L93.90", { level: 93 }],
  [
    "HEVC Main 10, high tier",
    [...small, ...x265("level-idc=50:high-tier=1", ...words("-pix_fmt yuv420p10le -tag:v hvc1"))],
    "hvc1.2.4.H150.90",
    { profile: "Main 10", level: 150 },
  ],
  // 854 x 480 is above the 278,784 pixels of level 2.1 and within the 665,856 of level 3.0 (A.3), which is index 4.
  ["AV1 3.0", [...picture("854x480", "25", 0.2), ...libaom], "av01.0.04M.08", { profile: "Main", level: 4 }],
  ["AV1, 10 bits", [...small, ...libaom, ...words("-pix_fmt yuv420p10le")], "av01.0.00M.10", { level: 0 }],
  ["AAC-LC", [...sound(0.2), ...words("-c:a aac")], "mp4a.40.2", { profile: "LC" }],
])("the codec string of %s", async (name, args, expected, probed) => {
  const { path, data } = await fragmented(name, args);
  const [stream] = JSON.parse(await ffprobe("-show_streams", "-of", "json", path)).streams;
  expect(stream).toMatchObject(probed);
  const init = readInit(data);
  expect(init.codec).toBe(expected);
  expect([init.width, init.height]).toEqual([stream.width ?? 0, stream.height ?? 0]);
  expect(codecOfSampleEntry(expected.slice(0, 4))?.name).toBe(stream.codec_name);
});

test.each([
  // The examples of ISO/IEC 14496-15, Annex E.3.
  ["an example of Annex E", hevc.codecString(bytes("01 01 40000000 B00000000000 5D"), "hev1"), "hev1.1.2.L93.B0"],
  ["all fields", hevc.codecString(bytes("01 64 82000000 B02300000000 78"), "hev1"), "hev1.A4.41.H120.B0.23"],
  ["no constraints", hevc.codecString(bytes("01 01 60000000 000000000000 5D"), "hvc1"), "hvc1.1.6.L93"],
  [
    "a zero between constraints",
    hevc.codecString(bytes("01 01 60000000 900000080000 5D"), "hvc1"),
    "hvc1.1.6.L93.90.0.0.8",
  ],
  ["12 bits, high tier", av1.codecString(bytes("81 4D EC 00")), "av01.2.13H.12"],
  [
    "one byte per descriptor size",
    aac.codecString(bytes("00000000 03 16 0001 00 04 11 40 15 000000 00000000 00000000 05 02 1190")),
    "mp4a.40.2",
  ],
  [
    "an object type above 31",
    aac.codecString(bytes("00000000 03 80808016 0001 00 04 80808011 40 15 000000 00000000 00000000 05 80808002 F950")),
    "mp4a.40.42",
  ],
])("%s", (_, codec, expected) => expect(codec).toBe(expected));

test.each([
  ["avcC", () => h264.codecString(bytes("01 64 00"))],
  ["hvcC", () => hevc.codecString(bytes("01 01 60000000 900000000000"), "hvc1")],
  ["av1C", () => av1.codecString(bytes("81 04 0C"))],
  ["esds", () => aac.codecString(bytes("00000000 03 16 0001 00 04 11 40 15"))],
])("a truncated %s is an error", (box, read) => expect(read).toThrow(`The init segment's ${box} is truncated.`));

test("configurations that cannot be described are errors", () => {
  expect(() => hevc.codecString(bytes("02 01 60000000 900000000000 5D"), "hvc1")).toThrow(/unsupported version/);
  expect(() => av1.codecString(bytes("01 04 0C 00"))).toThrow(/unsupported version/);
  expect(() => av1.codecString(bytes("81 24 00 00"))).toThrow(/not 4:2:0/);
  // MP3, which has the same sample entry as AAC.
  const mp3 = "00000000 03 13 0001 00 04 0D 6B 15 000000 00000000 00000000 06 01 02";
  expect(() => aac.codecString(bytes(mp3))).toThrow(/no AudioSpecificConfig/);
});

test("a damaged file is an error, and never read outside of its boxes", async () => {
  const h264Segment = await fragmented("damaged", [...small, ...x264("high", "3.1")]);
  const sources = [h264Segment.data, (await fragmented("damaged audio", [...sound(0.2), ...words("-c:a aac")])).data];
  const readers = [readInit, readSegmentTimes, readFirstSample, (data: Buffer) => joinSegments(data, data)];
  for (const read of readers) for (const data of sources) expect(() => read(data)).not.toThrow();
  const refuses = (data: Buffer) => {
    for (const read of readers)
      try {
        read(data);
      } catch (error) {
        // Node.js throws RangeError for a read outside of the buffer.
        expect((error as Error).constructor, (error as Error).stack).toBe(Error);
      }
  };
  for (const data of sources) for (let length = 0; length < 1500; length++) refuses(data.subarray(0, length));
  const damage = fc.array(fc.tuple(fc.nat(1500), fc.nat(255)), { minLength: 1, maxLength: 8 });
  fc.assert(
    fc.property(fc.constantFrom(...sources), damage, (data, changes) => {
      const copy = Buffer.from(data);
      for (const [at, value] of changes) if (at < copy.length) copy[at] = value;
      refuses(copy);
    }),
    { numRuns: 3000 },
  );
});

test("sample entries of no known codec are refused", async () => {
  const { data } = await fragmented("vp9", [...small, ...words("-c:v libvpx-vp9 -cpu-used 8")]);
  expect(() => readInit(data)).toThrow("The init segment has the unsupported sample entry vp09.");
  expect(codecOfSampleEntry("constructor")).toBeUndefined();
});

test("the registry has each codec under its own name, and one that every video is encoded with", () => {
  const all = [...Object.entries(videoCodecs), ...Object.entries(audioCodecs)];
  for (const [key, { name }] of all) expect(name).toBe(key);
  const entries = all.flatMap(([, { sampleEntries }]) => sampleEntries);
  expect(new Set(entries).size).toBe(entries.length);
  expect(primaryVideoCodecs.map(({ name }) => name)).toEqual(["h264"]);
  expect(additionalVideoCodecs.map(({ name }) => name)).toEqual(["hevc", "av1"]);
  expect(encodableAudioCodecs.map(({ name }) => name)).toEqual(["aac"]);
  // @ts-expect-error: no specification can require only a codec that many players do not know.
  const spec: EncodingSpec = { ...encodingSpec, video: { ...encodingSpec.video, codec: "av1" } };
  expect(spec.video.codec).toBe("av1");
});

/**
 * Other reasons to name a codec: decoders and demuxers of sources, file name extensions, an example, audio in playlists of others, the parameter sets
 * of exact clips, which only one codec has, what of a source may be interlaced or has another sample rate than it states, tracks of
 * transport streams that continue in another codec, and what publishers of live streams send or are to send, with the identifiers of FLV and
 * MPEG-TS, and what makes two of their configurations equal.
 */
const NAMED_ELSEWHERE = [
  "cli/import/tree/group.ts",
  "src/features/static-renditions/find-parts.ts",
  // Reads what a client delivered, in any codec.
  // Where captions are in the data differs.
  "src/lib/closed-captions/user-data.ts",
  "src/lib/mpegts/access-unit-reader.ts",
  "src/lib/mpegts/h264.ts",
  "src/lib/mpegts/hevc.ts",
  "src/lib/mpegts/stream-kinds.ts",
  "src/lib/mpegts/stream-types.ts",
  "src/lib/mpegts/track-readers.ts",
  "src/lib/rtmp/audio-tag.ts",
  "src/lib/rtmp/flv-fourcc.ts",
  "src/lib/rtmp/tag-writer.ts",
  "src/lib/rtmp/video-tag.ts",
  "src/live/converted-audio/aac-process.ts",
  "src/live/converted-audio/converting-sink.ts",
  "src/live/converted-audio/frame-encoder.ts",
  "src/live/converted-audio/opus-encoder.ts",
  "src/live/converted-audio/process-encoder.ts",
  "src/live/whip/media-receiver.ts",
  "src/live/whip/negotiation.ts",
  "src/live/whip/video-source.ts",
  "src/media/audio-decoding.ts",
  "src/media/clip/parameter-sets.ts",
  "src/media/ffmpeg-capabilities.ts",
  "src/media/ffmpeg.ts",
  "src/media/fields/deinterlacing.ts",
  "src/media/fields/field-frames.ts",
  "src/media/fields/h264.ts",
  // The encoder of intermediate files, whatever the renditions are.
  "src/media/ogg/join-links.ts",
  // ffmpeg's name of ADTS as a container.
  "src/media/plan.ts",
  "src/media/probe.ts",
  "src/media/timeline.ts",
  "src/media/transport/continuations.ts",
  "src/model/media-types.ts",
  "src/platform/http/openapi-examples.ts",
  "src/web/console/pages/live/studio/publisher.ts",
  "src/web/console/pages/live/texts.ts",
];

test("codecs are named in their own file, in the registry and in the encoding specification only", () => {
  const root = join(import.meta.dirname, "../../..");
  const files = ["src", "cli"].flatMap((under) =>
    readdirSync(join(root, under), { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile() && entry.name.endsWith(".ts"))
      .map((entry) => relative(root, join(entry.parentPath, entry.name))),
  );
  const names = /\b(?:avc[13C]|h26[45]|x26[45]|libx26[45]|hevc|hvc1|hev1|av01|av1|mp4a|aac|esds)\b/;
  const naming = files.filter((path) => names.test(readFileSync(join(root, path), "utf8")));
  // In the library each file is about one codec; entry points only name files.
  const allowed = (path: string) =>
    ["src/lib/codecs/", "src/media/encoding-spec.ts"].some((one) => path.startsWith(one)) ||
    /^src\/lib\/[^/]+\/index\.ts$/.test(path);
  expect(naming.filter((path) => !allowed(path)).sort()).toEqual(NAMED_ELSEWHERE);
});
