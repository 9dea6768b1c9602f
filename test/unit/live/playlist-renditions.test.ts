import { expect, test } from "vitest";
import type { LiveTimeline } from "#live/playlists/timeline.ts";
import { parseLivePlaylist } from "#test/support/hls-live-parser.ts";
import { STARTED_AT, timelineOf } from "#test/support/live-feed.ts";

/** Playlists of tracks that a worker encodes, behind the publisher's. Segments have a second and two parts. */

const BYTES = 1000;

function newStream(): LiveTimeline {
  const timeline = timelineOf({ segmentTargetSeconds: 1 });
  timeline.init({ track: "720p", kind: "video", codec: "avc1.64001f", width: 1280, height: 720 });
  return timeline;
}
const begin = (timeline: LiveTimeline) =>
  timeline.init({ track: "360p", kind: "video", codec: "avc1.64001e", width: 640, height: 360, isEncoded: true });

function part(timeline: LiveTimeline, track: string, segment: number, index: number) {
  const times = { durationSeconds: 0.5, startSeconds: segment - 1 + index * 0.5 };
  timeline.part({
    track,
    segment,
    part: index,
    offset: 76 + index * BYTES,
    bytes: BYTES,
    isIndependent: true,
    ...times,
  });
}
function segments(timeline: LiveTimeline, track: string, from: number, to = from) {
  for (let segment = from; segment <= to; segment++) {
    for (const index of [0, 1]) part(timeline, track, segment, index);
    const times = { durationSeconds: 1, startSeconds: segment - 1 };
    timeline.segment({ track, segment, bytes: 2 * BYTES, name: `0000${segment}.m4s`, ...times });
  }
}
const read = (timeline: LiveTimeline, track: string) =>
  parseLivePlaylist(timeline.mediaPlaylist(track)?.text() as string);
const reconnect = (timeline: LiveTimeline) => {
  timeline.interrupted();
  timeline.resumed(STARTED_AT + 60_000);
};

test("a rendition that begins after a reconnect counts the discontinuity before it", () => {
  const timeline = newStream();
  segments(timeline, "720p", 1, 3);
  reconnect(timeline);
  segments(timeline, "720p", 4, 5);
  begin(timeline);
  segments(timeline, "360p", 5);
  const { sequence, discontinuitySequence, segments: listed } = read(timeline, "360p");
  expect([sequence, discontinuitySequence]).toEqual([5, 1]);
  const [only] = listed;
  expect([only?.isDiscontinuous, only?.date]).toEqual([false, read(timeline, "720p").segments.at(-1)?.date]);
});

test("a rendition that is behind has the discontinuity where the publisher's track has it", () => {
  const timeline = newStream();
  begin(timeline);
  segments(timeline, "720p", 1, 3);
  segments(timeline, "360p", 1, 2);
  reconnect(timeline);
  expect(read(timeline, "720p").hasTrailingDiscontinuity).toBe(true);
  expect(read(timeline, "360p").hasTrailingDiscontinuity).toBe(false);
  segments(timeline, "360p", 3);
  expect(read(timeline, "360p").hasTrailingDiscontinuity).toBe(true);
  segments(timeline, "720p", 4);
  expect(read(timeline, "360p").hasTrailingDiscontinuity).toBe(true);
  segments(timeline, "360p", 4);
  const [source, rendition] = ["720p", "360p"].map((track) => read(timeline, track));
  const places = (playlist: typeof source) =>
    playlist?.segments.map(({ number, date, isDiscontinuous }) => [number, date, isDiscontinuous]);
  expect(places(rendition)).toEqual(places(source));
  expect(rendition?.segments.map(({ isDiscontinuous }) => isDiscontinuous)).toEqual([false, false, false, true]);
});

test("a gap replaces an open segment, and is only where the publisher's track has a segment", async () => {
  const timeline = newStream();
  begin(timeline);
  segments(timeline, "720p", 1, 2);
  segments(timeline, "360p", 1);
  part(timeline, "360p", 2, 0);
  expect(() => timeline.gap({ track: "720p", segment: 3, startSeconds: 2 })).toThrow(RangeError);
  timeline.gap({ track: "360p", segment: 2, startSeconds: 1 });
  expect(() => timeline.gap({ track: "360p", segment: 3, startSeconds: 2 })).toThrow("no segment 3");
  expect(read(timeline, "360p").segments.map(({ isGap, parts }) => [isGap, parts.length])).toEqual([
    ...[
      [false, 2],
      [true, 0],
    ],
  ]);
  segments(timeline, "720p", 3);
  segments(timeline, "360p", 3);
  // A gap has no bytes to measure.
  timeline.encode(["360p"]);
  const [source, rendition] = timeline.variants();
  expect([rendition?.track, rendition?.averageBandwidth]).toEqual(["360p", source?.averageBandwidth]);
});

test("a rendition is listed while it is encoded", async () => {
  const timeline = newStream();
  begin(timeline);
  segments(timeline, "720p", 1, 2);
  const names = async () => (await timeline.waitForMultivariantPlaylist()).text.match(/^\d+p/gm);
  // Nothing waits for it.
  expect(await names()).toEqual(["720p"]);
  segments(timeline, "360p", 2);
  expect(await names()).toEqual(["720p"]);
  timeline.encode(["360p"]);
  expect(await names()).toEqual(["720p", "360p"]);
  timeline.encode([]);
  expect(await names()).toEqual(["720p"]);
  expect(read(timeline, "360p").segments.map(({ number }) => number)).toEqual([2]);
  expect((await timeline.waitForManifest()).text()).not.toContain("360p");
});

test("another server continues with a rendition that is behind, from the first segment that it lists of the publisher", async () => {
  const timeline = newStream();
  begin(timeline);
  segments(timeline, "720p", 1, 3);
  segments(timeline, "360p", 2);
  timeline.encode(["360p"]);
  timeline.list({ segment: 2, startSeconds: 1, tracks: ["360p"] });
  reconnect(timeline);
  segments(timeline, "720p", 4);
  const other = timelineOf({ segmentTargetSeconds: 1, isLowLatency: false, state: timeline.state() });
  const both = [timeline, other];
  segments(timeline, "360p", 3, 4);
  for (const segment of [3, 4]) {
    const times = { durationSeconds: 1, startSeconds: segment - 1 };
    other.segment({ track: "360p", segment, bytes: 2 * BYTES, name: `0000${segment}.m4s`, ...times });
  }
  for (const each of both)
    for (const track of ["720p", "360p"]) {
      const times = { durationSeconds: 1, startSeconds: 4 };
      each.segment({ track, segment: 5, bytes: 2 * BYTES, name: "00005.m4s", ...times });
    }
  const [here, there] = both.map((each) => read(each, "360p"));
  expect(there?.segments.map(({ number, date }) => [number, date])).toEqual([[5, here?.segments.at(-1)?.date]]);
  expect(there?.discontinuitySequence).toBe(1);
  expect((await other.waitForMultivariantPlaylist()).text).toContain("360p/");
  const ids = async (each: LiveTimeline) => [
    ...(await each.waitForManifest()).text().matchAll(/<Period id="([^"]+)"/g),
  ];
  const [all, last] = await Promise.all(both.map(ids));
  expect(all?.map(([, id]) => id)).toEqual(["0", "0-2", "1"]);
  expect(last?.map(([, id]) => id)).toEqual(["1"]);
  expect((await other.waitForManifest()).text()).toContain('<Representation id="360p"');
});
