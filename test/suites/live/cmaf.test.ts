import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { openSegment } from "#live/cmaf/segment-file.ts";
import { encodingSpec } from "#media/encoding-spec.ts";
import { writeManifests } from "#media/manifests.ts";
import { readWritten } from "#media/package.ts";
import { rows, sample } from "#test/support/amount.ts";
import { emptyFolder } from "#test/support/folder.ts";
import {
  aac,
  joined,
  messagesOf,
  type Packaged,
  packageAll,
  packetsIn,
  picture,
  sound,
  x264,
} from "#test/support/live/cmaf-publisher.ts";
import type { Message } from "#test/support/live/flv-reader.ts";
import { complaints, ffprobe } from "#test/support/media/sources.ts";

const samplesOf = (messages: Message[], kind: "video" | "audio") =>
  messages.flatMap(({ sample }) => (sample?.kind === kind ? [sample] : []));

/** A complete rendition as a file, which decodes without a warning. */
async function decoded(packaged: Packaged, kind: "video" | "audio"): Promise<string> {
  const path = join(emptyFolder(), `${kind}.mp4`);
  await writeFile(path, await joined(packaged, kind));
  expect(await complaints("-i", path, "-f", "null", "-")).toBe("");
  return path;
}

async function countFrames(url: string, stream: string): Promise<number> {
  const entries = ["-count_packets", "-show_entries", "stream=nb_read_packets", "-of", "csv=p=0"];
  return Number.parseInt(await ffprobe("-select_streams", stream, ...entries, url), 10);
}

const STREAMS = [
  {
    name: "30 frames per second, a keyframe per second",
    rate: "30",
    gop: 30,
    frames: 2,
    audioRate: 48_000,
    segments: [4, 4, 1],
  },
  {
    name: "25 frames per second, a keyframe every 2 s",
    rate: "25",
    gop: 50,
    frames: 2,
    audioRate: 44_100,
    segments: [4, 4, 1],
  },
  {
    name: "29.97 frames per second, without B-frames",
    rate: "30000/1001",
    gop: 60,
    frames: 0,
    audioRate: 48_000,
    segments: [4, 4, 1],
  },
  {
    name: "59.94 frames per second, a keyframe every 5 s",
    rate: "60000/1001",
    gop: 300,
    frames: 2,
    audioRate: 44_100,
    segments: [5, 4],
  },
];

test.each(sample(STREAMS, 2))("packages $name", async ({ rate, gop, frames, audioRate, segments }) => {
  const seconds = 9;
  const messages = await messagesOf(
    ...picture(seconds, rate),
    ...sound(seconds, audioRate),
    ...x264(gop, frames),
    ...aac,
  );
  const packaged = await packageAll(messages);
  const [num = 0, den = 1] = rate.split("/").map(Number);
  expect(packaged.recording.video?.rate).toEqual({ num, den });
  const durations = packaged.segments
    .filter(({ track }) => track === "video")
    .map((one) => Math.round(one.durationSeconds));
  expect(durations).toEqual(segments);

  // Every frame, on the grid of the frame rate, from 0.
  const source = samplesOf(messages, "video");
  const packets = await packetsIn(await decoded(packaged, "video"));
  expect(packets.length).toBe(source.length);
  expect(packets.map(({ isKey }) => isKey)).toEqual(source.map(({ isKeyframe }) => isKeyframe));
  const shown = packets.map(({ pts }) => pts).sort((a, b) => a - b);
  for (const [index, pts] of shown.entries()) expect(pts).toBeCloseTo((index * den) / num, 4);
  const first = source[0];
  for (const [index, { pts }] of packets.entries()) {
    const sample = source[index];
    const sent = (sample?.timestamp ?? 0) + (sample?.compositionOffset ?? 0);
    expect(Math.abs(pts * 1000 - sent + ((first?.timestamp ?? 0) + (first?.compositionOffset ?? 0)))).toBeLessThan(2.1);
  }

  // Audio lasts as long, in as many segments, and is in sync.
  const audio = await packetsIn(await decoded(packaged, "audio"));
  const { video: v, audio: a } = packaged.recording;
  expect(a?.segments).toBe(v?.segments);
  expect(Math.abs((a?.durationSeconds ?? 0) - (v?.durationSeconds ?? 0))).toBeLessThan(0.05);
  for (const [index, { pts }] of audio.slice(1).entries())
    expect(pts - (audio[index]?.pts ?? 0)).toBeCloseTo(1024 / audioRate, 4);
  const origin = ((first?.timestamp ?? 0) + (first?.compositionOffset ?? 0)) / 1000;
  const kept = samplesOf(messages, "audio").filter(
    ({ timestamp }) => timestamp / 1000 + 1024 / audioRate > origin + 0.001,
  );
  expect(Math.abs((audio[0]?.pts ?? 0) - ((kept[0]?.timestamp ?? 0) / 1000 - origin))).toBeLessThan(0.002);
  expect(packaged.health.filter(({ code }) => code !== "keyframe_interval")).toEqual([]);
});

test("parts are at most as long as announced, where they were reported, and decode", async () => {
  const messages = await messagesOf(...picture(7), ...sound(7), ...x264(60), ...aac);
  const packaged = await packageAll(messages);
  for (const { kind, name, maxPartSeconds } of packaged.inits) {
    const init = await readFile(join(packaged.folder, name, "init.mp4"));
    const parts = packaged.parts.filter(({ track }) => track === kind);
    let end = 0;
    for (const { content, path, offset, bytes, ...part } of parts) {
      expect(part.durationSeconds).toBeLessThanOrEqual(maxPartSeconds);
      expect(Math.abs(part.startSeconds - end)).toBeLessThan(kind === "audio" ? 0.03 : 1e-6);
      end = part.startSeconds + part.durationSeconds;
      await using file = await openSegment(path ?? "");
      expect((await file.read(Buffer.alloc(bytes), 0, bytes, offset)).buffer.equals(content)).toBe(true);
      if (!part.isIndependent) continue;
      const alone = join(emptyFolder(), "part.mp4");
      await writeFile(alone, Buffer.concat([init, content]));
      expect(await complaints("-i", alone, "-f", "null", "-")).toBe("");
    }
    // LL-HLS: only the last part of a segment may be shorter than 85 % of the others.
    const inner = parts.filter((part, index) => parts[index + 1]?.segment === part.segment);
    for (const { durationSeconds } of inner) expect(durationSeconds).toBeGreaterThan(0.85 * maxPartSeconds);
    expect(parts.filter(({ isIndependent }) => isIndependent).length).toBeGreaterThanOrEqual(4);
  }
});

test.each(
  rows(
    [
      ["a last segment that is too short to stay one", 12.2, 3],
      ["a last segment", 13, 4],
    ] as const,
    1,
  ),
)("the folder with %s is video on demand", async (_, seconds, count) => {
  const messages = await messagesOf(...picture(seconds), ...sound(seconds), ...x264(60), ...aac);
  const { folder, recording } = await packageAll(messages);
  const video = recording.video;
  const audio = recording.audio;
  const written = {
    video: await readWritten(folder, video?.name ?? ""),
    audio: await readWritten(folder, audio?.name ?? ""),
  };
  expect(written.video?.durationSeconds).toBeCloseTo(video?.durationSeconds ?? 0, 6);
  expect(written.audio?.durationSeconds).toBeCloseTo(audio?.durationSeconds ?? 0, 6);
  expect(written.video?.segments.length).toBe(count);
  expect(written.video?.init).toMatchObject({ width: 320, height: 180, codec: expect.stringMatching(/^avc1\./) });
  expect(written.audio?.init.codec).toBe("mp4a.40.2");
  const { bytes } = await writeManifests({
    outDir: folder,
    plan: {
      video: video && { rate: video.rate },
      audio: [{ name: "audio", channels: audio?.channels ?? 0, surroundOf: null, track: { language: null } }],
    },
    spec: encodingSpec,
    videos: written.video ? [written.video] : [],
    audios: written.audio ? [written.audio] : [],
    names: { manifest: "master.m3u8", dash: "manifest.mpd" },
    storyboard: null,
  });
  expect(bytes).toBeGreaterThan((video?.bytes ?? 0) + (audio?.bytes ?? 0));
  for (const manifest of ["master.m3u8", "manifest.mpd"]) {
    const url = join(folder, manifest);
    expect(await complaints("-i", url, "-map", "0:v:0", "-map", "0:a:0", "-f", "null", "-")).toBe("");
    expect(await countFrames(url, "v:0")).toBe(samplesOf(messages, "video").length);
  }
});

test.each(
  rows(
    [
      [13, [4, 4, 4, 1]],
      [1, [1]],
    ] as const,
    1,
  ),
)("audio alone of %d s is cut every 4 s", async (seconds, durations) => {
  const messages = await messagesOf(...sound(seconds, 44_100), ...aac);
  const packaged = await packageAll(messages);
  const { recording, segments } = packaged;
  expect(recording.video).toBeNull();
  expect(segments.map(({ durationSeconds }) => Math.round(durationSeconds))).toEqual(durations);
  expect((await packetsIn(await decoded(packaged, "audio"))).length).toBe(samplesOf(messages, "audio").length);
});

test("a stream without a second keyframe is refused after the limit, and what was recorded is complete", async () => {
  const messages = await messagesOf(...picture(20, 10), ...x264(1000, 0));
  const packaged = await packageAll(messages);
  expect(packaged.health.map(({ code, isFatal }) => [code, isFatal])).toEqual([
    ["keyframe_interval", false],
    ["keyframe_interval_exceeded", true],
  ]);
  expect(packaged.recording.video?.durationSeconds).toBeCloseTo(12.2, 1);
  await decoded(packaged, "video");
});

test("a keyframe every 10 s makes segments of 10 s", async () => {
  const messages = await messagesOf(...picture(21, 25), ...sound(21), ...x264(250), ...aac);
  const packaged = await packageAll(messages);
  const durations = packaged.segments.filter(({ track }) => track === "video").map((one) => one.durationSeconds);
  expect(durations).toEqual([10, 10, 1]);
  expect(packaged.health.map(({ code }) => code)).toEqual(["keyframe_interval"]);
  expect((await packetsIn(await decoded(packaged, "video"))).length).toBe(525);
});
