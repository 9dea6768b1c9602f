import { expect, test } from "vitest";
import { parseLivePlaylist } from "../../support/hls-live-parser.ts";
import { Feed, timelineOf } from "../../support/live-feed.ts";
import { processorMs } from "../../support/processor-time.ts";

const TWELVE_HOURS = 12 * 3600;

test("a window of 12 hours is rendered in under 10 ms of processor time, and delta updates are small", () => {
  const feed = new Feed(timelineOf({ dvrSeconds: TWELVE_HOURS }));
  for (let segment = 0; segment < 11_000; segment++) for (const track of feed.tracks) feed.whole(track);
  const times = Array.from({ length: 15 }, () => {
    feed.part("720p");
    return processorMs(() => feed.text("720p"));
  });
  // The fastest: garbage collection adds to the rest.
  expect(Math.min(...times)).toBeLessThan(10);
  expect(parseLivePlaylist(feed.text("720p"))).toMatchObject({ sequence: 201 });
  expect(feed.text("720p").length).toBeGreaterThan(800_000);
  expect(feed.text("720p", true).length).toBeLessThan(3000);
});

test("the number of segments is bounded, however short they are", () => {
  const feed = new Feed(timelineOf({ dvrSeconds: TWELVE_HOURS }), ["720p"]);
  for (let segment = 0; segment < 100_000; segment++) feed.whole("720p", 0.1);
  const { segments, sequence } = parseLivePlaylist(feed.text("720p"));
  expect(segments).toHaveLength(21_600);
  expect(sequence).toBe(100_001 - 21_600);
  expect(segments.at(-1)?.complete?.uri).toBe("100000.m4s");
});
