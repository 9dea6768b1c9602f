import { expect, test } from "vitest";
import { parseLivePlaylist } from "#test/support/hls-live-parser.ts";
import { Feed, timelineOf } from "#test/support/live-feed.ts";
import { processorMs } from "#test/support/processor-time.ts";

const TWELVE_HOURS = 12 * 3600;

/** The least of 15 times: garbage collection adds to the rest. */
const least = (work: () => unknown) => Math.min(...Array.from({ length: 15 }, () => processorMs(work)));

/** As many lines, from numbers and times only. It takes about twice as long as a playlist whose lines are kept. */
function plainLines(): string {
  const lines = Array.from({ length: 10_800 }, (_, index) => {
    const date = new Date(index * 4000).toISOString();
    return `#EXT-X-PROGRAM-DATE-TIME:${date}\n#EXTINF:${(4).toFixed(5)},\n${index}.m4s`;
  });
  return lines.join("\n");
}

test("a window of 12 hours is rendered in the time of so many plain lines, and delta updates are small", () => {
  const feed = new Feed(timelineOf({ dvrSeconds: TWELVE_HOURS }));
  for (let segment = 0; segment < 11_000; segment++) for (const track of feed.tracks) feed.whole(track);
  const reference = least(plainLines);
  const rendered = least(() => {
    feed.part("720p");
    return feed.text("720p");
  });
  expect(rendered).toBeLessThan(1.5 * reference);
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
