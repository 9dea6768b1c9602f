import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { PartList } from "#live/playlists/part-list.ts";
import { emptyFolder } from "#test/support/folder.ts";
import {
  aac,
  collect,
  type Frame,
  feed,
  joined,
  messagesOf,
  type Packaged,
  packageAll,
  packetsIn,
  picture,
  shifted,
  sound,
  x264,
} from "#test/support/live/cmaf-publisher.ts";
import type { Message } from "#test/support/live/flv-reader.ts";
import { complaints } from "#test/support/media/sources.ts";

const stream = () => messagesOf(...picture(5), ...sound(5), ...x264(60), ...aac);

async function packets(packaged: Packaged, kind: "video" | "audio"): Promise<Frame[]> {
  const path = join(emptyFolder(), "joined.mp4");
  await writeFile(path, await joined(packaged, kind));
  expect(await complaints("-i", path, "-f", "null", "-")).toBe("");
  return packetsIn(path);
}

/** The steps between decode times, rounded to 0.1 ms, and how often each occurs. */
function stepsOf(frames: Frame[]): Record<string, number> {
  const steps = frames.slice(1).map(({ dts }, index) => ((dts - (frames[index]?.dts ?? 0)) * 1000).toFixed(1));
  return Object.fromEntries([...Map.groupBy(steps, (step) => step)].map(([step, all]) => [step, all.length]));
}

const config = (messages: Message[]) => messages.filter((message) => message.config);
const samples = (messages: Message[]) => messages.filter((message) => message.sample);

test.each([
  ["32 bits", 2 ** 32],
  ["31 bits", 2 ** 31],
])("timestamps of %s wrap", async (_, wrap) => {
  const messages = await stream();
  const expected = await packageAll(messages);
  const packaged = await packageAll(shifted(messages, wrap - 2000, wrap));
  for (const kind of ["video", "audio"] as const)
    expect((await joined(packaged, kind)).equals(await joined(expected, kind))).toBe(true);
  expect(packaged.health).toEqual([]);
});

test.each([
  ["forward by an hour", 3_600_000, 0],
  ["back by 5 minutes", -300_000, 0],
  ["back by 5 s, those of audio first", -5000, 5],
])("timestamps jump %s: the timeline continues, in sync", async (_, jump, early) => {
  const messages = await stream();
  const moved = shifted(samples(messages), 10_000_000 + 5000 + jump);
  const first = moved.filter(({ sample }) => sample?.kind === "audio").slice(0, early);
  const later = [...first, ...moved.filter((message) => !first.includes(message))];
  const packaged = await packageAll([...shifted(messages, 10_000_000), ...later]);
  const video = await packets(packaged, "video");
  expect(stepsOf(video)).toEqual({ "33.3": 299 });
  const audio = await packets(packaged, "audio");
  expect((audio.at(-1)?.pts ?? 0) + 1024 / 48_000).toBeCloseTo(10, 1);
  // No audio is dropped.
  expect([...new Set(packaged.health.map(({ code }) => code))]).toEqual(["timestamp_jump"]);
  expect(packaged.recording.durationSeconds).toBeCloseTo(10, 6);
});

test("a variable frame rate keeps its times", async () => {
  // Some of 60 frames per second, in no pattern.
  const select = "select=lt(mod(n*n*7\\,11)\\,5)+not(mod(n\\,60))";
  const messages = await messagesOf(...picture(8, 60), ...["-vf", select, "-vsync", "vfr"], ...x264(40, 2));
  const source = samples(messages).map(({ sample }) => sample);
  const video = await packets(await packageAll(messages), "video");
  expect(video.length).toBe(source.length);
  const origin = (source[0]?.timestamp ?? 0) + (source[0]?.compositionOffset ?? 0);
  for (const [index, { pts }] of video.entries()) {
    const sent = (source[index]?.timestamp ?? 0) + (source[index]?.compositionOffset ?? 0) - origin;
    expect(Math.abs(pts * 1000 - sent)).toBeLessThan(2.1);
  }
  expect(Object.keys(stepsOf(video)).length).toBeGreaterThan(2);
});

test("dropped frames leave a gap of whole frames", async () => {
  const select = ["-vf", "select=not(between(n\\,100\\,103))", "-vsync", "vfr"];
  const messages = await messagesOf(...picture(5), ...select, ...x264(60, 0));
  expect(stepsOf(await packets(await packageAll(messages), "video"))).toEqual({ "33.3": 144, "166.7": 1 });
});

test("missing audio is replaced by silence, and late audio is dropped", async () => {
  const messages = await stream();
  const isMissing = (timestamp: number) => timestamp > 1000 && timestamp < 3500;
  const packaged = await packageAll(
    messages.filter(({ sample }) => sample?.kind !== "audio" || !isMissing(sample.timestamp)),
  );
  expect(stepsOf(await packets(packaged, "audio"))).toEqual({ "21.3": expect.any(Number) });
  expect(packaged.recording.audio?.durationSeconds).toBeCloseTo(5, 1);
  expect(packaged.recording.audio?.segments).toBe(packaged.recording.video?.segments);
  expect(packaged.health.map(({ code }) => code)).toContain("audio_gap");
});

test.each([
  [4700, []],
  [2000, ["audio_gap"]],
])("after audio that ends at %i ms of 5 s there is silence, which is reported as %o", async (endMs, codes) => {
  const messages = await stream();
  const packaged = await packageAll(
    messages.filter(({ sample }) => sample?.kind !== "audio" || sample.timestamp < endMs),
  );
  expect(packaged.recording.audio?.durationSeconds).toBeCloseTo(5, 1);
  expect([...new Set(packaged.health.map(({ code }) => code))]).toEqual(codes);
});

test("without silence of its format, the packet before missing audio lasts until the next one", async () => {
  const four = [...sound(5).slice(0, -1), "sine=d=5:r=48000,aformat=channel_layouts=4.0"];
  const messages = await messagesOf(...picture(5), ...four, ...x264(60), ...aac);
  const isMissing = (timestamp: number) => timestamp > 1000 && timestamp < 3500;
  const packaged = await packageAll(
    messages.filter(({ sample }) => sample?.kind !== "audio" || !isMissing(sample.timestamp)),
  );
  expect(packaged.inits.find(({ kind }) => kind === "audio")?.channels).toBe(4);
  const audio = await packets(packaged, "audio");
  expect(Object.keys(stepsOf(audio)).length).toBe(2);
  expect((audio.at(-1)?.pts ?? 0) + 1024 / 48_000).toBeCloseTo(5, 1);
  expect(packaged.recording.audio?.segments).toBe(packaged.recording.video?.segments);
});

test("audio that begins late is preceded by silence", async () => {
  const messages = await stream();
  const packaged = await packageAll(
    messages.filter(({ sample }) => sample?.kind !== "audio" || sample.timestamp > 2000),
  );
  const audio = await packets(packaged, "audio");
  expect(stepsOf(audio)).toEqual({ "21.3": audio.length - 1 });
  expect(Math.abs(audio[0]?.pts ?? 1)).toBeLessThan(0.022);
});

test("video before the first keyframe is dropped, and audio of that time with it", async () => {
  const messages = await stream();
  const [first, ...others] = samples(messages).filter(({ sample }) => sample?.kind === "video");
  expect(first?.sample?.isKeyframe).toBe(true);
  const packaged = await packageAll(messages.filter((message) => message !== first));
  const video = await packets(packaged, "video");
  expect(video.length).toBe(others.length - 59);
  expect(video[0]).toMatchObject({ pts: 0, isKey: true });
  const audio = await packets(packaged, "audio");
  expect(Math.abs(audio[0]?.pts ?? 1)).toBeLessThan(0.022);
  expect(packaged.recording.audio?.durationSeconds).toBeCloseTo(3, 1);
});

test("a publisher that comes back continues the timeline in the next segment", async () => {
  const messages = await stream();
  const { packager, ...packaged } = collect();
  feed(packager, messages);
  packager.interrupt();
  feed(packager, samples(messages));
  packager.resume();
  feed(packager, shifted(messages, 777_000));
  const recording = await packager.end();
  const video = await packets(packaged, "video");
  expect(stepsOf(video)).toEqual({ "33.3": 299 });
  expect(stepsOf(await packets(packaged, "audio"))).toEqual({ "21.3": expect.any(Number) });
  expect(recording.durationSeconds).toBeCloseTo(10, 6);
  expect(Math.abs((recording.audio?.durationSeconds ?? 0) - 10)).toBeLessThan(0.05);
  const numbers = packaged.segments.filter(({ track }) => track === "video").map(({ segment }) => segment);
  expect(numbers).toEqual([1, 2, 3, 4]);
  expect(recording.audio?.segments).toBe(4);
});

test("frames after a reconnect are presented after those before it, when the connection broke inside a group", async () => {
  const messages = await stream();
  // Up to a frame that is presented after B-frames which do not arrive any more.
  const late = messages.findLastIndex(({ sample }) => (sample?.compositionOffset ?? 0) > 70);
  const { packager, ...packaged } = collect();
  feed(packager, messages.slice(0, late + 1));
  packager.interrupt();
  packager.resume();
  feed(packager, messages);
  await packager.end();
  const times = (await packets(packaged, "video")).map(({ pts }) => Math.round(pts * 30));
  expect(new Set(times).size).toBe(times.length);
  const isAfter = times.slice(-150).every((time) => time > Math.max(...times.slice(0, -150)));
  expect(isAfter).toBe(true);
});

test("parts keep to PART-TARGET wherever the connection breaks", async () => {
  const messages = await stream();
  const frames = messages.flatMap(({ sample }, index) => (sample?.kind === "video" ? [index] : []));
  // Every position in a part, and in a group of frames: parts have 15 frames, groups 4.
  for (const index of frames.slice(70, 70 + 60)) {
    const { packager, ...packaged } = collect();
    feed(packager, messages.slice(0, index + 1));
    await packager.interrupt();
    const { inits, parts } = packaged;
    const target = Math.max(...inits.map(({ maxPartSeconds }) => maxPartSeconds));
    expect(inits.length).toBe(2);
    for (const { kind } of inits)
      for (const [segment, events] of Map.groupBy(
        parts.filter(({ track }) => track === kind),
        ({ segment: number }) => number,
      )) {
        const list = new PartList(target, 0);
        for (const event of events) list.add(event);
        expect({ index, kind, segment, ...list }).toMatchObject({ isClosed: true, over: 0, under: 0 });
      }
  }
});

test("a changed configuration is reported and refused", async () => {
  const messages = await stream();
  const other = await messagesOf(...picture(1, 30, "640x360"), ...x264(30));
  const { packager, ...packaged } = collect();
  feed(packager, messages);
  feed(packager, config(messages));
  expect(packaged.changed).toEqual([]);
  const [changed] = config(other);
  expect(changed?.config && packager.config(changed.config)).toBe("changed");
  feed(packager, samples(other));
  const recording = await packager.end();
  expect(packaged.changed).toEqual([changed?.config]);
  expect(recording.durationSeconds).toBeCloseTo(5, 6);
  expect((await packets(packaged, "video")).length).toBe(150);
});
