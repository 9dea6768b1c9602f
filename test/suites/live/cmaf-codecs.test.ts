import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import type { TrackConfig } from "#src/lib/codecs/samples.ts";
import { emptyFolder } from "#test/support/folder.ts";
import {
  aac,
  collect,
  feed,
  joined,
  messagesOf,
  packageAll,
  packetsIn,
  picture,
  sound,
  x264,
} from "#test/support/live/cmaf-publisher.ts";
import { messagesOfMp4 } from "#test/support/live/mp4-messages.ts";
import { complaints, ffprobe } from "#test/support/media/sources.ts";
import { seeded } from "#test/support/seed.ts";

const CODECS = [
  ["h264", ["-c:v", "libx264", "-preset", "ultrafast", "-g", "60", "-bf", "2"], /^avc1\.42c0|^avc1\.4d40|^avc1\.64/],
  [
    "hevc",
    [
      "-c:v",
      "libx265",
      "-preset",
      "ultrafast",
      "-tag:v",
      "hvc1",
      "-x265-params",
      "keyint=60:open-gop=0:log-level=none",
    ],
    /^hvc1\./,
  ],
  ["av1", ["-c:v", "libsvtav1", "-preset", "12", "-g", "60"], /^av01\./],
] as const;

test.each(CODECS)("packages %s", async (codec, encoder, codecString) => {
  const input = [...picture(5, 30, "328x182"), "-pix_fmt", "yuv420p"];
  const messages = await messagesOfMp4(codec, ...input, ...encoder);
  const packaged = await packageAll(messages);
  expect(packaged.inits).toMatchObject([{ kind: "video", name: "182p", width: 328, height: 182 }]);
  expect(packaged.inits[0]?.codec).toMatch(codecString);
  const path = join(emptyFolder(), "joined.mp4");
  await writeFile(path, await joined(packaged, "video"));
  expect(await complaints("-i", path, "-f", "null", "-")).toBe("");
  const packets = await packetsIn(path);
  const shown = packets.map(({ pts }) => pts).sort((a, b) => a - b);
  expect(packets.length).toBe(150);
  for (const [index, pts] of shown.entries()) expect(Math.abs(pts - index / 30)).toBeLessThan(0.0005);
});

test("the init segment states colors and the aspect of pixels", async () => {
  const colors = [
    "-color_primaries",
    "smpte170m",
    "-color_trc",
    "bt709",
    "-colorspace",
    "smpte170m",
    "-color_range",
    "pc",
  ];
  const packaged = await packageAll(await messagesOf(...picture(1), "-vf", "setsar=4/3", ...x264(30), ...colors));
  const init = await readFile(join(packaged.folder, "180p", "init.mp4"));
  const entry = init.indexOf("nclx");
  expect([...init.subarray(entry + 4, entry + 11)]).toEqual([0, 6, 0, 1, 0, 6, 0x80]);
  expect([...init.subarray(init.indexOf("pasp") + 4).subarray(0, 8)]).toEqual([0, 0, 0, 4, 0, 0, 0, 3]);
  const path = join(emptyFolder(), "joined.mp4");
  await writeFile(path, await joined(packaged, "video"));
  expect(await ffprobe("-show_entries", "stream=sample_aspect_ratio", "-of", "csv=p=0", path)).toBe("4:3\n");
});

test.each([
  ["without B-frames", "bframes=0"],
  ["with a pyramid", "bframes=8:b-adapt=0:ref=5"],
  ["with scaling lists", "scaling-list=default:bframes=3"],
])("HEVC %s states colors, aspect and frame rate", async (_, parameters) => {
  const more =
    "colorprim=bt2020:transfer=smpte2084:colormatrix=bt2020nc:range=limited:sar=4\\:3:open-gop=0:log-level=none";
  const encoder = ["-c:v", "libx265", "-preset", "medium", "-tag:v", "hvc1", "-x265-params", `${parameters}:${more}`];
  const input = [...picture(2, "30000/1001"), "-pix_fmt", "yuv420p10le", "-vf", "setsar=4/3"];
  const packaged = await packageAll(await messagesOfMp4("hevc", ...input, ...encoder));
  const init = await readFile(join(packaged.folder, "180p", "init.mp4"));
  const colr = init.indexOf("nclx");
  expect([...init.subarray(colr + 4, colr + 11)]).toEqual([0, 9, 0, 16, 0, 9, 0]);
  expect([...init.subarray(init.indexOf("pasp") + 4).subarray(0, 8)]).toEqual([0, 0, 0, 4, 0, 0, 0, 3]);
  expect(packaged.recording.video?.rate).toEqual({ num: 30_000, den: 1001 });
  const path = join(emptyFolder(), "joined.mp4");
  await writeFile(path, await joined(packaged, "video"));
  const steps = (await packetsIn(path)).map(
    ({ dts }, index, all) => dts - (all[index - 1]?.dts ?? dts - 1001 / 30_000),
  );
  for (const step of steps) expect(step).toBeCloseTo(1001 / 30_000, 5);
});

test.each([
  ["SVT-AV1", ["-c:v", "libsvtav1", "-preset", "12"]],
  ["libaom", ["-c:v", "libaom-av1", "-cpu-used", "8", "-usage", "realtime"]],
])("AV1 of %s states colors", async (_, encoder) => {
  const colors = [
    "-color_primaries",
    "bt2020",
    "-color_trc",
    "smpte2084",
    "-colorspace",
    "bt2020nc",
    "-color_range",
    "tv",
  ];
  const input = [
    ...picture(1),
    "-pix_fmt",
    "yuv420p10le",
    "-vf",
    "setparams=color_primaries=bt2020:color_trc=smpte2084:colorspace=bt2020nc:range=tv",
  ];
  const packaged = await packageAll(await messagesOfMp4("av1", ...input, ...encoder, ...colors, "-g", "30"));
  const init = await readFile(join(packaged.folder, "180p", "init.mp4"));
  const colr = init.indexOf("nclx");
  expect([...init.subarray(colr + 4, colr + 11)]).toEqual([0, 9, 0, 16, 0, 9, 0]);
  expect(packaged.recording.video?.rate).toEqual({ num: 30, den: 1 });
});

test("interlaced and cropped video has its size", async () => {
  const messages = await messagesOf(...picture(1, 25, "722x580"), ...x264(25), "-flags", "+ildct+ilme");
  expect((await packageAll(messages)).inits).toMatchObject([{ width: 722, height: 580 }]);
});

test("a malformed configuration is refused, and never anything else", async () => {
  const configs = [
    ...(await messagesOf(...picture(1), ...sound(1), ...x264(30), ...aac)),
    ...(await messagesOfMp4("hevc", ...picture(1), ...(CODECS[1][1] as readonly string[]))),
    ...(await messagesOfMp4("av1", ...picture(1), ...(CODECS[2][1] as readonly string[]))),
  ].flatMap(({ config }) => (config ? [config] : []));
  expect(configs.length).toBe(4);
  const random = seeded();
  let refused = 0;
  const attempt = (config: TrackConfig, configuration: Buffer) => {
    try {
      collect({ folder: "/nonexistent" }).packager.config({ ...config, configuration } as TrackConfig);
    } catch (error) {
      expect((error as Error).name).toBe("ConfigurationInvalid");
      refused++;
    }
  };
  for (const config of configs) {
    const { configuration } = config;
    for (let length = 0; length < Math.min(configuration.length, 60); length++)
      attempt(config, configuration.subarray(0, length));
    for (let round = 0; round < 500; round++) {
      const changed = Buffer.from(configuration);
      for (let count = 0; count < 3; count++) changed[random.whole(0, changed.length - 1)] = random.whole(0, 255);
      attempt(config, changed);
    }
    attempt(config, Buffer.alloc(1 << 20, configuration));
  }
  expect(refused).toBeGreaterThan(100);
});

test("hostile samples end in a report, not in an error, and what is in memory is bounded", async () => {
  const messages = await messagesOf(...picture(1), ...sound(1), ...x264(30), ...aac);
  const { packager, ...packaged } = collect();
  feed(packager, messages);
  const values = seeded();
  const random = (most: number) => values.whole(0, most - 1);
  let most = 0;
  for (let index = 0; index < 20_000; index++) {
    packager.sample({
      kind: random(2) ? "video" : "audio",
      timestamp: random(2) ? random(2 ** 32) : index,
      compositionOffset: random(2 ** 24) - 2 ** 23,
      isKeyframe: random(20) === 0,
      data: Buffer.alloc(random(500)),
    });
    most = Math.max(most, packager.pendingBytes);
  }
  packager.sample({ kind: "video", timestamp: 0, compositionOffset: 0, isKeyframe: true, data: Buffer.alloc(2 ** 25) });
  const recording = await packager.end();
  expect(most).toBeLessThan(80 * 2 ** 20);
  expect(recording.video?.segments).toBe(recording.audio?.segments);
  expect(packaged.health.length).toBeGreaterThan(0);
});
