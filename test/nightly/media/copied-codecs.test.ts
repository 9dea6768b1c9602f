import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, describe, expect, test, vi } from "vitest";
import { BUILT_IN_PROFILES, specOf } from "#media/encoding-profiles.ts";
import { readHdrBoxes } from "#src/lib/isobmff/hdr-boxes.ts";
import { encodedSource } from "#test/suites/media/encoded-source.ts";
import { rows } from "#test/support/amount.ts";
import { flashing, words } from "#test/support/media/matrix-sources.ts";
import { complaints, ffmpeg, ffprobe, packetsOf, sound, temporaryFolder } from "#test/support/media/sources.ts";
import { nightly } from "#test/support/nightly.ts";

/** Sources in HEVC and AV1 whose video is copied as the top rendition of its codec. */
vi.setConfig({ maxConcurrency: 2 });

const folder = temporaryFolder("copied-codecs");
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const LADDER = [
  { height: 240, max_bitrate: 2_000_000 },
  { height: 120, max_bitrate: 300_000 },
];
const profile = { ...BUILT_IN_PROFILES.default.definition, ladder: LADDER };
const specs = {
  hevc: specOf({ ...profile, codecs: ["h264", "hevc"] }, null),
  av1: specOf({ ...profile, codecs: ["h264", "av1"] }, null),
  hdr: specOf({ ...profile, codecs: ["h264", "hevc"], hdr: "keep" }, null),
  av1Hdr: specOf({ ...profile, codecs: ["h264", "av1"], hdr: "keep" }, null),
  h264: specOf(profile, null),
};

const X265 = "log-level=error:keyint=50:min-keyint=1:scenecut=0:open-gop=0";
const x265 = (params = X265, format = "yuv420p") => [
  ...words(`-c:v libx265 -preset ultrafast -crf 28 -pix_fmt ${format} -x265-params`),
  params,
];
const svt = (gop = 50, format = "yuv420p") =>
  words(`-c:v libsvtav1 -preset 12 -crf 45 -g ${gop} -pix_fmt ${format} -flags +cgop`);
const hdr = (transfer: string) =>
  words(`-color_primaries bt2020 -color_trc ${transfer} -colorspace bt2020nc -color_range tv`);
const PQ = hdr("smpte2084");
const HLG = hdr("arib-std-b67");
const MASTERING =
  "master-display=G(13250,34500)B(7500,3000)R(34000,16000)WP(15635,16450)L(10000000,50):max-cll=1000,400";
const clip = (seconds = 9, size = "426x240") => [...flashing(size, "25", seconds), ...sound(seconds)];

/** Checksums of the decoded frames. */
const framesOf = async (path: string) =>
  (await ffmpeg("-i", path, "-map", "0:v:0", "-f", "framemd5", "-"))
    .toString()
    .split("\n")
    .flatMap((line) => (/^\d+, .*?, *(\w{32})/.exec(line) ?? []).slice(1));

async function encodedFile(name: string, args: string[], spec = specs.hevc, damage?: (whole: Buffer) => Buffer) {
  const input = join(folder, name);
  const { result, dir } = await encodedSource({ input, args, spec, scratchDir: folder, damage });
  const names = result.renditions.map((one) => one.name);
  const playlist = (rendition: string) => join(dir, rendition, "playlist.m3u8");
  const lengths = (rendition: string) =>
    [...readFileSync(playlist(rendition), "utf8").matchAll(/#EXTINF:([\d.]+)/g)].map(([, seconds]) => Number(seconds));
  for (const each of names) {
    expect(lengths(each), each).toEqual(lengths(names[0] as string));
    expect(await complaints("-i", playlist(each), "-f", "null", "-"), each).toBe("");
  }
  return {
    ...result,
    input,
    dir,
    names,
    playlist,
    lengths,
    init: (one: string) => readFileSync(join(dir, one, "init.mp4")),
  };
}

const HEVC_NAMES = ["240p", "120p", "240p-hevc", "120p-hevc"];

describe.concurrent("a source that fits is the top rendition of its codec", () => {
  test("in HEVC, of which an encoder wrote the sample entry hev1", async () => {
    const copied = await encodedFile("a.mp4", [...clip(), ...x265()]);
    expect(copied.names).toEqual(HEVC_NAMES);
    expect(copied.lengths("240p-hevc")).toEqual([4, 4, 1]);
    expect(await packetsOf(copied.playlist("240p-hevc"))).toEqual(await packetsOf(copied.input));
    const top = copied.renditions[2];
    expect(top).toMatchObject({ width: 426, height: 240, codecs: expect.stringMatching(/^hvc1\.1\.6\.L\d+\.90,/) });
    const tag = ["-select_streams", "v", "-show_entries", "stream=codec_name,codec_tag_string", "-of", "csv=p=0"];
    expect(await ffprobe(...tag, copied.playlist("240p-hevc"))).toMatch(/^hevc,hvc1\n/);
    expect(await ffprobe(...tag, copied.playlist("240p"))).toMatch(/^h264,avc1\n/);
  });

  nightly("in AV1", async () => {
    const copied = await encodedFile("b.mp4", [...clip(), ...svt()], specs.av1);
    expect(copied.names).toEqual(["240p", "120p", "240p-av1", "120p-av1"]);
    expect(copied.lengths("240p-av1")).toEqual([4, 4, 1]);
    expect(await packetsOf(copied.playlist("240p-av1"))).toEqual(await packetsOf(copied.input));
    expect(copied.renditions[2]?.codecs).toMatch(/^av01\.0\.\d\dM\.08,/);
  });

  nightly("in HDR, with its metadata, and without the parameter sets that its frames repeat", async () => {
    const x265Params = `${X265}:${MASTERING}`;
    const copied = await encodedFile("c.mp4", [...clip(), ...PQ, ...x265(x265Params, "yuv420p10le")], specs.hdr);
    expect(copied.names).toEqual(HEVC_NAMES);
    const without = ["-bsf:v", "hevc_mp4toannexb,filter_units=remove_types=32-34"];
    const own = copied.playlist("240p-hevc");
    const source = copied.input;
    expect(await packetsOf(source)).not.toEqual(await packetsOf(source, ...without));
    expect((await packetsOf(own, ...without)).length).toBe(225);
    expect(await framesOf(own)).toEqual(await framesOf(source));
    expect(copied.renditions.map(({ hdr }) => hdr)).toEqual([null, null, "hdr10", "hdr10"]);
    expect(copied.renditions[2]?.codecs).toMatch(/^hvc1\.2\.4\.L\d+\.90,/);
    expect(readHdrBoxes(copied.init("240p-hevc"))).toEqual(readHdrBoxes(copied.init("120p-hevc")));
    expect(readHdrBoxes(copied.init("240p-hevc")).light).toEqual({ maxContent: 1000, maxAverage: 400 });
  });

  nightly("in AV1 and HLG", async () => {
    const copied = await encodedFile("hlg.mp4", [...clip(), ...HLG, ...svt(50, "yuv420p10le")], specs.av1Hdr);
    expect(copied.names).toEqual(["240p", "120p", "240p-av1", "120p-av1"]);
    expect(await packetsOf(copied.playlist("240p-av1"))).toEqual(await packetsOf(copied.input));
    expect(copied.renditions.map(({ hdr }) => hdr)).toEqual([null, null, "hlg", "hlg"]);
    expect(copied.renditions[2]?.codecs).toMatch(/^av01\.0\.\d\dM\.10\.0\.110\.09\.18\.09\.0,/);
  });
});

const scratched = (whole: Buffer) => {
  const at = Math.floor(whole.indexOf("mdat") + (whole.length - whole.indexOf("mdat")) / 2);
  return whole.fill(0x55, at, at + 3000);
};

/** The second keyframe gets the type of an ordinary slice: TRAIL_R instead of IDR_W_RADL or IDR_N_LP. */
const withoutIdr = (whole: Buffer) => {
  const first = whole.indexOf("mdat") + 4;
  const idr = (from: number) => {
    for (let at = from; at < whole.length; at++)
      if ((whole[at] === 0x26 || whole[at] === 0x28) && whole[at + 1] === 0x01 && whole[at - 4] === 0) return at;
    throw new Error("The source has no second keyframe.");
  };
  whole[idr(idr(first) + 100)] = 0x02;
  return whole;
};

describe.concurrent("a source that does not fit is encoded", () => {
  test.each<[string, string, string[], ((whole: Buffer) => Buffer)?]>(
    rows(
      [
        [
          "open groups",
          "k.mp4",
          [...clip(), ...x265(`${X265.replace("open-gop=0", "open-gop=1")}:bframes=3:b-adapt=0`)],
        ],
        ["key frames 10 s apart", "l.mp4", [...clip(11), ...x265(X265.replace("keyint=50", "keyint=250"))]],
        ["too many bits", "m.mp4", [...clip(5), "-vf", "noise=alls=60:allf=t", ...x265(), "-crf", "8"]],
        ["10 bit without HDR", "n.mp4", [...clip(), ...x265(X265, "yuv420p10le")]],
        ["HDR that is not kept", "o.mp4", [...clip(5), ...PQ, ...x265(X265, "yuv420p10le")]],
        ["a size between two rungs of another shape", "p.mp4", [...clip(5, "500x300"), ...x265()]],
        ["fields", "w.mp4", [...clip(), ...x265(`${X265}:interlace=tff`)]],
        ["damaged frames", "r.mp4", [...clip(), ...x265()], scratched],
        ["a keyframe that is none", "s.mp4", [...clip(), ...x265()], withoutIdr],
      ],
      2,
    ),
  )("%s", async (_, name, args, damage) => {
    const result = await encodedFile(name, args, specs.hevc, damage);
    expect(result.names).toEqual(HEVC_NAMES);
    const own = await packetsOf(result.playlist("240p-hevc"));
    expect(own).not.toEqual(await packetsOf(result.input));
  });

  test("of a codec that the profile does not have", async () => {
    const result = await encodedFile("q.mp4", [...clip(5), ...x265()], specs.h264);
    expect(result.names).toEqual(["240p", "120p"]);
    expect(result.lengths("240p")).toEqual([4, 1]);
  });
});

/** Two encodes one after another, each with its parameter sets in its keyframes. */
async function joined(name: string, references: readonly [number, number]) {
  const encodes = references.map((count) =>
    ffmpeg(...flashing("426x240", "25", 4), ...x265(`${X265}:ref=${count}:bframes=0`), "-f", "hevc", "-"),
  );
  const raw = join(folder, `${name}.hevc`);
  writeFileSync(raw, Buffer.concat(await Promise.all(encodes)));
  const { input, playlist } = await encodedFile(`${name}.mp4`, ["-r", "25", "-f", "hevc", "-i", raw, "-c", "copy"]);
  return { source: await framesOf(input), own: await framesOf(playlist("240p-hevc")) };
}

nightly("parameter sets in frames are removed, but a source in which they change is encoded", async () => {
  const alike = await joined("u", [1, 1]);
  const changing = await joined("v", [1, 3]);
  expect(alike.own).toHaveLength(200);
  expect(alike.own).toEqual(alike.source);
  expect(changing.own).toHaveLength(200);
  expect(changing.own).not.toEqual(changing.source);
});
