import { expect, test } from "vitest";
import { LiveTimeline } from "#live/playlists/timeline.ts";
import type { TimelineState } from "#live/playlists/timeline-types.ts";
import { parseLivePlaylist } from "#test/support/hls-live-parser.ts";
import { Feed, STARTED_AT, segmentFile, timelineOf } from "#test/support/live-feed.ts";

/** A timeline that continues another one lists what it receives exactly as the other one does. */

const TRACKS = ["720p", "audio"];

/** Two timelines with the same segments, of which the second one continues the first at segment `from`. */
function both(from: number, count: number, interruptions: readonly number[], dependentFrom = Number.POSITIVE_INFINITY) {
  const plain = { isLowLatency: false, dvrSeconds: 60 };
  const feed = new Feed(timelineOf(plain), TRACKS);
  let continued: LiveTimeline | null = null;
  for (let segment = 1; segment <= count; segment++) {
    const state = JSON.parse(JSON.stringify(feed.timeline.state())) as TimelineState;
    // Another first segment would make another TARGETDURATION.
    const durationSeconds = segment === 1 ? 5.9 : 4;
    if (segment === from)
      continued = new LiveTimeline({
        ...plain,
        startedAtMs: STARTED_AT,
        partTargetSeconds: 4,
        segmentTargetSeconds: 4,
        playlistName: "live.m3u8",
        state,
      });
    const timelines = [feed.timeline, ...(continued ? [continued] : [])];
    if (interruptions.includes(segment)) {
      for (const timeline of timelines) timeline.interrupted();
      for (const timeline of timelines) timeline.resumed(STARTED_AT + 100_000 * segment);
    }
    for (const track of TRACKS) {
      const { segmentStart } = feed.state(track);
      const isIndependent = track === "audio" || segment < dependentFrom;
      const event = { track, segment, bytes: 1000, durationSeconds, startSeconds: segmentStart, isIndependent };
      continued?.segment({ ...event, name: segmentFile(segment) });
      feed.whole(track, durationSeconds, isIndependent);
    }
  }
  return { feed, continued: continued as unknown as LiveTimeline };
}

const textOf = (timeline: LiveTimeline, track: string) => timeline.mediaPlaylist(track)?.text();

/** The DASH manifest, without the bitrates: the segments of the feed have other sizes. */
const manifestOf = async (timeline: LiveTimeline) =>
  (await timeline.waitForManifest()).text().replaceAll(/ bandwidth="\d+"/g, "");

test.each([
  ["without interruptions", []],
  ["after interruptions", [5, 20]],
  ["at an interruption", [30]],
  ["before interruptions", [10, 31, 33]],
] as const)("once the window has passed, both are equal: %s", async (_, interruptions) => {
  const { feed, continued } = both(30, 60, interruptions);
  for (const track of TRACKS) {
    expect(textOf(continued, track)).toBe(feed.text(track));
    expect(parseLivePlaylist(feed.text(track)).target).toBe(6);
  }
  expect(await manifestOf(continued)).toBe(await manifestOf(feed.timeline));
});

test.each([
  ["before", 20],
  ["after", 40],
])("segments that began to have no keyframes %s it are the same period in both", async (_, dependentFrom) => {
  const { feed, continued } = both(30, 60, [], dependentFrom);
  const manifest = await manifestOf(feed.timeline);
  expect(manifest).toMatch(new RegExp(`<Period id="0-${dependentFrom}"`));
  expect(await manifestOf(continued)).toBe(manifest);
});

test("before that, numbers, dates and discontinuities of the same segments are equal", () => {
  const { feed, continued } = both(30, 35, [25, 32]);
  for (const track of TRACKS) {
    const [all, some] = [feed.text(track), textOf(continued, track) as string].map(parseLivePlaylist);
    expect(some?.segments).toEqual(all?.segments.slice(-6));
    expect(some?.discontinuitySequence).toBe(1);
  }
});
