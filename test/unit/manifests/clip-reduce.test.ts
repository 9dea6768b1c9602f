import { expect, test } from "vitest";
import { PARSERS } from "#platform/parsing/parsers.ts";
import { reduceMpd, reducePlaylist } from "#src/lib/manifests/clip/reduce.ts";
import { mediaPlaylist } from "#src/lib/manifests/m3u8.ts";
import { staticMpd } from "#src/lib/manifests/mpd.ts";
import type { SharedMedia } from "#src/lib/manifests/shared-media.ts";
import { Random } from "#test/support/crash/random.ts";

const COUNT = 2700;
const names = Array.from({ length: COUNT }, (_, index) => `${String(index + 1).padStart(5, "0")}.m4s`);
const head = { version: 7, initUri: "init.mp4", targetDurationSeconds: 4 };
/** 30000/1001 frames per second: segments of 120 and 119 frames. */
const videoTicks = (index: number) => (index % 2 === 0 ? 120_120 : 119_119);
const audioTicks = (index: number) => (index % 3 === 0 ? 193_536 : 191_488);
const seconds = (ticks: number, timescale: number) => ticks / timescale;

const playlist = (ticks: (index: number) => number, timescale: number, isIFramesOnly = false) =>
  mediaPlaylist({
    ...head,
    isIFramesOnly,
    segments: names.map((uri, index) => ({
      uri,
      durationSeconds: seconds(ticks(index), timescale),
      ...(isIFramesOnly && { range: { offset: 800 + index, bytes: 30_000 + index } }),
    })),
  });
const texts = {
  main: playlist(videoTicks, 30_000),
  audio: playlist(audioTicks, 48_000),
  frames: playlist(videoTicks, 30_000, true),
};
function segmentsOf(ticks: (index: number) => number) {
  let start = 0;
  return names.map((_, index) => {
    const segment = { start, duration: ticks(index) };
    start += segment.duration;
    return segment;
  });
}
const mpd = staticMpd({
  profile: "p",
  durationSeconds: 10_800,
  maxSegmentSeconds: 4,
  initTemplate: "$RepresentationID$/init.mp4",
  mediaTemplate: "$RepresentationID$/$Number%05d$.m4s",
  sets: [
    {
      kind: "video",
      language: null,
      isMain: true,
      representations: ["main", "low"].map((id) => ({
        id,
        bandwidth: 1,
        codec: "avc1.64001f",
        timescale: 30_000,
        segments: segmentsOf(videoTicks),
        video: { width: 640, height: 360, frameRate: "30000/1001" },
      })),
    },
    {
      kind: "audio",
      language: null,
      isMain: true,
      representations: [
        {
          id: "audio",
          bandwidth: 1,
          codec: "mp4a.40.2",
          timescale: 48_000,
          segments: segmentsOf(audioTicks),
          audio: { sampleRate: 48_000, channels: 2 },
        },
      ],
    },
  ],
});

const decoded = (result: object) =>
  "text" in result ? { ...result, text: Buffer.from(result.text as Uint8Array).toString() } : result;

test("a clip of reduced manifests is the same as one of whole manifests", () => {
  const random = new Random(7);
  for (let round = 0; round < 40; round++) {
    // At the start, at the end, and anywhere.
    const start = round === 0 ? 0 : round === 1 ? 10_740 : random.next() * 10_700;
    const around = { start, end: start + 0.1 + random.next() * 20 };
    const cut = (bytes: Uint8Array) => PARSERS.clipPlaylist({ bytes, path: "main/playlist.m3u8", around });
    const main = cut(Buffer.from(texts.main));
    expect(decoded(cut(reducePlaylist(Buffer.from(texts.main), around)))).toEqual(decoded(main));
    if (!("segments" in main)) throw new Error("impossible");
    const range = { start: main.start, end: main.end, withMoreAudio: round % 2 === 0 };
    const shared: SharedMedia = { startSeconds: 0, segments: [main.segments], objects: ["main/init.mp4"] };
    shared.segments.push({ ...main.segments, before: "low/" });
    shared.objects.push("low/init.mp4", "audio/init.mp4");
    for (const kind of ["main", "audio", "frames"] as const) {
      const along = (bytes: Uint8Array) => PARSERS.clipPlaylist({ bytes, path: `${kind}/x.m3u8`, kind, range });
      const whole = along(Buffer.from(texts[kind]));
      const reduced = reducePlaylist(Buffer.from(texts[kind]), range);
      expect(reduced.byteLength).toBeLessThan(2500);
      expect(decoded(along(reduced))).toEqual(decoded(whole));
      if (kind === "audio" && "segments" in whole) shared.segments.push(whole.segments);
    }
    const dash = (bytes: Uint8Array) => PARSERS.clipMpd({ bytes, path: "manifest.mpd", range, shared });
    const reduced = reduceMpd(Buffer.from(mpd), range);
    expect(reduced.byteLength).toBeLessThan(8000);
    expect(decoded(dash(reduced))).toEqual(decoded(dash(Buffer.from(mpd))));
    expect(dash(reduced)).not.toHaveProperty("impossible");
  }
});

test.each([
  ["another tag", texts.main.replace("#EXTINF", "#EXT-X-GAP\n#EXTINF")],
  ["a discontinuity in the middle", texts.main.replace("00900.m4s\n", "00900.m4s\n#EXT-X-DISCONTINUITY\n")],
  ["no end", texts.main.replace("#EXT-X-ENDLIST\n", "")],
  ["a master playlist", "#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=1\nlow.m3u8\n"],
  ["nothing", ""],
])("a playlist with %s is not changed", (_, text) => {
  const bytes = Buffer.from(text);
  expect(reducePlaylist(bytes, { start: 3000, end: 3010 })).toBe(bytes);
});

test("a DASH manifest of another form is not changed", () => {
  for (const text of [
    mpd.replaceAll('<S t="', '<S n="1" t="'),
    mpd.replaceAll("<SegmentTimeline>", "<SegmentTimeline >"),
  ])
    expect(Buffer.from(reduceMpd(Buffer.from(text), { start: 3000, end: 3010 })).toString()).toBe(text);
});
