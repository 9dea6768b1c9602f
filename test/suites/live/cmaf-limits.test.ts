import { expect, test } from "vitest";
import { createPackager } from "#live/cmaf/packager.ts";
import { openSegment } from "#live/cmaf/segment-file.ts";
import type { LiveSample } from "#src/lib/codecs/samples.ts";
import { emptyFolder } from "#test/support/folder.ts";
import { aac, collect, feed, messagesOf, picture, sound, x264 } from "#test/support/live/cmaf-publisher.ts";

const configOf = async () => (await messagesOf(...picture(1), ...x264(30))).filter(({ config }) => config);

/** A frame at that time: nothing in the packager reads its content. */
const frame = (timestamp: number, bytes = 100): LiveSample => ({
  kind: "video",
  timestamp,
  compositionOffset: 0,
  isKeyframe: true,
  data: Buffer.alloc(bytes),
});

test("a part can be read from the moment it is reported, and under the same name when its segment is complete", async () => {
  const reads: Promise<boolean>[] = [];
  const packager = createPackager({
    folder: emptyFolder(),
    onPart: ({ path, offset, bytes, data }) => {
      const expected = Buffer.concat(data);
      const read = async () => {
        await using file = await openSegment(path ?? "");
        return (await file.read(Buffer.alloc(bytes), 0, bytes, offset)).buffer.equals(expected);
      };
      reads.push(read());
    },
  });
  feed(packager, await messagesOf(...picture(9), ...sound(9), ...x264(60), ...aac));
  await packager.end();
  expect(reads.length).toBeGreaterThan(30);
  expect(await Promise.all(reads)).toEqual(reads.map(() => true));
  await expect(openSegment("/nonexistent/00001.m4s")).rejects.toMatchObject({ code: "ENOENT" });
});

test("a disk that is slower than the stream ends the recording instead of filling the memory", async () => {
  const released = Promise.withResolvers<void>();
  const { packager, ...packaged } = collect({ admit: () => released.promise });
  feed(packager, await configOf());
  let most = 0;
  for (let index = 0; index < 200; index++) {
    packager.sample(frame(index * 33, 2 ** 20));
    most = Math.max(most, packager.pendingBytes);
  }
  released.resolve();
  const { video } = await packager.end();
  expect(packaged.health).toMatchObject([{ code: "disk_too_slow", isFatal: true }]);
  expect(most).toBeLessThan(70 * 2 ** 20);
  expect(packager.pendingBytes).toBe(0);
  expect(video?.bytes).toBeGreaterThan(64 * 2 ** 20);
});

test("a recording ends after a day", async () => {
  const { packager, ...packaged } = collect({ targetSegmentSeconds: 1000, maxSegmentSeconds: 2000 });
  feed(packager, await configOf());
  for (let seconds = 0; seconds < 25 * 3600; seconds += 10) packager.sample(frame(seconds * 1000));
  const { durationSeconds } = await packager.end();
  expect(packaged.health.filter(({ isFatal }) => isFatal)).toMatchObject([{ code: "duration_exceeded" }]);
  expect(Math.abs(durationSeconds - 24 * 3600)).toBeLessThan(1100);
});

test("samples without data or configuration, and those that are too large, are dropped", async () => {
  const { packager, ...packaged } = collect();
  packager.sample(frame(0));
  feed(packager, await configOf());
  packager.sample(frame(0, 0));
  packager.sample(frame(0, 2 ** 25));
  packager.sample({ ...frame(0), kind: "audio" });
  expect(await packager.end()).toEqual({ video: null, audio: null, durationSeconds: 0 });
  expect(packaged.health).toMatchObject([{ code: "sample_too_large", isFatal: false }]);
  packager.sample(frame(0));
  expect(packaged.inits).toEqual([]);
});

test("audio without a keyframe of the configured video continues alone", async () => {
  const messages = await messagesOf(...picture(14), ...sound(14), ...x264(60), ...aac);
  const { packager, ...packaged } = collect();
  feed(
    packager,
    messages.filter(({ sample }) => sample?.kind !== "video"),
  );
  const { video, audio } = await packager.end();
  expect(video).toBeNull();
  expect(audio?.durationSeconds).toBeCloseTo(14, 0);
  expect(packaged.health).toMatchObject([{ code: "video_missing", isFatal: false }]);
});

test("video that stops while audio continues shows its last frame, which is reported after a minute", async () => {
  const messages = await messagesOf(...picture(70), ...sound(70), ...x264(60), ...aac);
  const { packager, ...packaged } = collect();
  feed(
    packager,
    messages.filter(({ sample }) => sample?.kind !== "video" || sample.timestamp < 3000),
  );
  const { video, audio } = await packager.end();
  expect(packaged.health).toMatchObject([{ code: "video_missing", isFatal: false }]);
  expect(audio?.durationSeconds).toBeCloseTo(70, 0);
  expect(Math.abs((audio?.durationSeconds ?? 0) - (video?.durationSeconds ?? 1))).toBeLessThan(0.05);
});
