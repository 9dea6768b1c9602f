import HLS from "hls-parser";
import { describe, expect, test } from "vitest";
import { readPartName } from "#live/playlists/names.ts";
import { references } from "#src/lib/manifests/references.ts";
import { parseLivePlaylist } from "#test/support/hls-live-parser.ts";
import { Feed, STARTED_AT, timelineOf } from "#test/support/live-feed.ts";

const parsed = (feed: Feed, track = "720p") => parseLivePlaylist(feed.text(track));
type Parsed = ReturnType<typeof parsed>;
const numbers = ({ segments }: Parsed) => segments.map(({ number }) => number);
const lastDate = ({ segments }: Parsed) => segments.at(-1)?.date;

describe("a media playlist with low latency", () => {
  test("has all that LL-HLS needs, and hls-parser reads it", () => {
    const feed = new Feed(timelineOf());
    feed.segments(5);
    feed.part("720p");
    feed.part("720p", 0.5, { isIndependent: false });
    feed.part("audio");
    const playlist = HLS.parse(feed.text("720p")) as HLS.types.MediaPlaylist;
    expect(playlist.targetDuration).toBe(4);
    expect(playlist.partTargetDuration).toBe(0.5);
    expect(playlist.lowLatencyCompatibility).toMatchObject({
      canBlockReload: true,
      canSkipUntil: 24,
      holdBack: 12,
      partHoldBack: 1.5,
    });
    expect(playlist.segments.slice(0, 5).map(({ uri, duration }) => ({ uri, duration }))).toEqual(
      [1, 2, 3, 4, 5].map((number) => ({ uri: `0000${number}.m4s`, duration: 4 })),
    );
    expect(playlist.segments[0]?.map.uri).toBe("init.mp4");
    // 2 and 3 end less than 3 target durations before the end at 21 s, but begin before that.
    expect(playlist.segments.map(({ parts }) => parts.length)).toEqual([0, 0, 0, 8, 8, 3]);
    expect(playlist.segments.at(-1)?.parts).toMatchObject([
      { uri: "00006.0.m4s", duration: 0.5, independent: true },
      { uri: "00006.1.m4s", duration: 0.5 },
      { uri: "00006.2.m4s", hint: true },
    ]);
    expect(playlist.segments.at(-1)?.parts[1]?.independent).toBeFalsy();
    expect(playlist.renditionReports).toMatchObject([{ uri: "../audio/live.m3u8", lastMSN: 6, lastPart: 0 }]);
    expect(playlist.segments[4]?.programDateTime?.getTime()).toBe(STARTED_AT + 16_000);
    expect(playlist.endlist).toBe(false);
  });

  test("drops segments that are older than the window, and counts them", () => {
    const feed = new Feed(timelineOf({ dvrSeconds: 40 }), ["720p", "audio"], 7);
    feed.segments(10);
    expect(numbers(parsed(feed))).toEqual([7, 8, 9, 10, 11, 12, 13, 14, 15, 16]);
    feed.segments(1);
    expect(parsed(feed).sequence).toBe(8);
    feed.segments(2000);
    expect(numbers(parsed(feed))).toEqual([2008, 2009, 2010, 2011, 2012, 2013, 2014, 2015, 2016, 2017]);
  });

  test("keeps six target durations when the window is shorter", () => {
    const feed = new Feed(timelineOf({ dvrSeconds: 0 }));
    feed.segments(20);
    expect(parsed(feed).segments).toHaveLength(6);
  });

  test("skips what a client has", () => {
    const feed = new Feed(timelineOf({ dvrSeconds: 400 }));
    feed.segments(30);
    const delta = feed.text("720p", true);
    expect(parseLivePlaylist(delta)).toMatchObject({ sequence: 1, skipped: 24, map: null });
    expect(parseLivePlaylist(delta).segments.map(({ number }) => number)).toEqual([25, 26, 27, 28, 29, 30]);
    expect((HLS.parse(delta) as HLS.types.MediaPlaylist).skip).toBe(24);
  });

  test("hints at the part that is announced as next", () => {
    const feed = new Feed(timelineOf());
    feed.segments(2);
    expect(parsed(feed).hint).toBe("00003.0.m4s");
    feed.part("720p");
    expect(parsed(feed).hint).toBe("00003.1.m4s");
    feed.part("720p", 0.5, { isLast: true });
    expect(parsed(feed).hint).toBe("00004.0.m4s");
  });

  test("has the same URIs for the mapping of playlists and for its own", () => {
    const feed = new Feed(timelineOf());
    feed.segments(3);
    feed.part("720p");
    const playlist = feed.timeline.mediaPlaylist("720p");
    const seen: string[] = [];
    const text = playlist?.text((uri) => {
      seen.push(uri);
      return `${uri}?token="a\nb`;
    });
    expect(seen).toEqual(references(feed.text("720p")));
    expect(seen).toContain("init.mp4");
    expect(seen).toContain("00004.1.m4s");
    expect(seen).toContain("../audio/live.m3u8");
    expect(references(text ?? "")).toEqual(seen.map((uri) => `${uri}?token='a b`));
  });

  test("ends with everything, without a hint and without delta updates", () => {
    const feed = new Feed(timelineOf({ dvrSeconds: 400 }));
    feed.segments(30);
    feed.timeline.ended();
    expect(parsed(feed)).toMatchObject({ isEnded: true, hint: null, reports: [] });
    expect(feed.text("720p").endsWith("00030.m4s\n#EXT-X-ENDLIST\n")).toBe(true);
    expect(feed.text("720p", true)).toBe(feed.text("720p"));
    expect(() => feed.part("720p")).toThrow(RangeError);
  });
});

describe("parts", () => {
  test("that are short are joined with the next", () => {
    const feed = new Feed(timelineOf(), ["720p"]);
    for (let part = 0; part < 4000; part++) feed.part("720p", 0.001);
    feed.segment("720p");
    const { segments } = parsed(feed);
    expect(segments[0]?.parts.length).toBeLessThan(11);
    expect(feed.timeline.facts()).toMatchObject({ partsOver: 0, partsUnder: 0 });
  });

  test("may be short at the end of a segment", () => {
    const feed = new Feed(timelineOf(), ["720p"]);
    feed.segments(1);
    feed.part("720p");
    feed.part("720p", 0.1);
    expect(parsed(feed).segments[1]?.parts).toHaveLength(1);
    feed.segment("720p");
    expect(parsed(feed).segments[1]?.parts.map(({ durationSeconds }) => durationSeconds)).toEqual([0.5, 0.1]);
  });

  test("that break the rules are counted", () => {
    const feed = new Feed(timelineOf(), ["720p"]);
    for (const seconds of [2, 0.3, 0.4, 0.5, 0.8]) feed.part("720p", seconds);
    feed.segment("720p");
    expect(feed.timeline.facts()).toMatchObject({ partsOver: 2, partsUnder: 2 });
  });

  test("without an end of the segment are refused at a limit", () => {
    const feed = new Feed(timelineOf(), ["720p"]);
    expect(() => {
      for (let part = 0; part < 1000; part++) feed.part("720p");
    }).toThrow("A segment has over 512 parts.");
  });

  test("have names that can be read", () => {
    expect(readPartName("00012.3.m4s")).toEqual({ segment: 12, part: 3 });
    expect(readPartName("123456.0.m4s")).toEqual({ segment: 123_456, part: 0 });
    for (const name of ["00012.m4s", "000012.3.m4s", "00012.03.m4s", "00012.3.m4s.bak", "../00012.3.m4s", "1.1.m4s"])
      expect(readPartName(name), name).toBeNull();
  });
});

describe("an interruption", () => {
  test("is announced in all playlists at once, and counted when it leaves", () => {
    const feed = new Feed(timelineOf({ dvrSeconds: 24 }));
    feed.segments(7);
    feed.part("720p");
    feed.segment("720p");
    feed.part("audio");
    feed.segment("audio");
    feed.timeline.interrupted();
    for (const track of feed.tracks)
      expect(parsed(feed, track)).toMatchObject({ hasTrailingDiscontinuity: true, hint: null });
    feed.timeline.resumed(STARTED_AT + 60_000);
    for (const track of feed.tracks)
      expect(parsed(feed, track)).toMatchObject({ hasTrailingDiscontinuity: true, hint: "00009.0.m4s" });
    feed.part("720p");
    expect(parsed(feed).segments.at(-1)).toMatchObject({ number: 9, isDiscontinuous: true, date: STARTED_AT + 60_000 });
    expect(parsed(feed, "audio")).toMatchObject({ hasTrailingDiscontinuity: true });
    for (let part = 1; part < 8; part++) feed.part("720p");
    for (let part = 0; part < 8; part++) feed.part("audio");
    for (const track of feed.tracks) feed.segment(track);
    expect(parsed(feed)).toMatchObject({ discontinuitySequence: 0 });
    feed.segments(6);
    expect(parsed(feed).segments[0]).toMatchObject({ number: 10 });
    for (const track of feed.tracks) expect(parsed(feed, track)).toMatchObject({ discontinuitySequence: 1 });
  });

  test("waits for the end of a segment that is open", () => {
    const feed = new Feed(timelineOf());
    feed.segments(2);
    feed.part("720p");
    feed.timeline.interrupted();
    expect(feed.text("720p")).not.toContain("DISCONTINUITY\n");
    expect(parsed(feed, "audio").hasTrailingDiscontinuity).toBe(true);
    feed.segment("720p");
    expect(parsed(feed)).toMatchObject({ hasTrailingDiscontinuity: true });
    expect(numbers(parsed(feed))).toEqual([1, 2, 3]);
  });

  test("precedes segments that begin in it", () => {
    const feed = new Feed(timelineOf());
    feed.segments(2);
    feed.timeline.interrupted();
    feed.segments(1);
    expect(parsed(feed)).toMatchObject({ hasTrailingDiscontinuity: false, hint: null });
    expect(parsed(feed).segments[2]).toMatchObject({ number: 3, isDiscontinuous: true });
    feed.timeline.resumed(STARTED_AT + 30_000);
    feed.segments(1);
    expect(parsed(feed).segments[3]).toMatchObject({ isDiscontinuous: false, date: STARTED_AT + 30_000 });
  });

  test("without media after the last one is the same", () => {
    const feed = new Feed(timelineOf());
    feed.segments(2);
    for (let time = 0; time < 3; time++) {
      feed.timeline.interrupted();
      feed.timeline.resumed(STARTED_AT + 20_000);
    }
    expect(feed.text("720p").split("#EXT-X-DISCONTINUITY\n")).toHaveLength(2);
  });

  test("is counted by a track that begins later", () => {
    const feed = new Feed(timelineOf(), ["720p"]);
    feed.segments(2);
    feed.timeline.interrupted();
    feed.timeline.resumed(STARTED_AT + 20_000);
    feed.init("audio");
    feed.segments(1);
    expect(parsed(feed, "audio")).toMatchObject({ discontinuitySequence: 1 });
    expect(lastDate(parsed(feed, "audio"))).toBe(lastDate(parsed(feed)));
  });

  test("never sets dates back", () => {
    const feed = new Feed(timelineOf());
    feed.segments(2);
    feed.timeline.interrupted();
    feed.timeline.resumed(STARTED_AT - 1000);
    feed.segments(1);
    expect(lastDate(parsed(feed))).toBe(STARTED_AT + 8000);
  });
});

describe("TARGETDURATION", () => {
  test.each([
    [0.5, 4, false, false],
    [4.004, 4, false, false],
    [4.3, 5, true, false],
    [8.333, 9, true, false],
    [12, 12, true, false],
    [12.5, 13, true, true],
  ])("of a first segment of %d s is %d and stays", (first, targetSeconds, isTargetLong, isTargetTooLong) => {
    const feed = new Feed(timelineOf());
    feed.whole("720p", first);
    const facts = { targetSeconds, isTargetLong, isTargetTooLong };
    expect(feed.timeline.facts()).toMatchObject(facts);
    feed.whole("720p", 20);
    expect(feed.timeline.facts()).toMatchObject({ ...facts, segmentsOver: 1 });
    expect(parsed(feed).target).toBe(targetSeconds);
  });

  test("is unknown, and so is the playlist, until a segment is complete", () => {
    const feed = new Feed(timelineOf());
    feed.part("720p");
    expect(feed.timeline.facts().targetSeconds).toBeNull();
    expect(feed.timeline.mediaPlaylist("720p")).toBeNull();
  });
});

test("a playlist without low latency has segments only", () => {
  const feed = new Feed(timelineOf({ isLowLatency: false, dvrSeconds: 400 }));
  feed.segments(30);
  feed.part("720p");
  const text = feed.text("720p", true);
  expect(text).not.toMatch(/PART|SKIP|RENDITION/);
  expect(text).toContain("#EXT-X-SERVER-CONTROL:CAN-BLOCK-RELOAD=YES,HOLD-BACK=12\n");
  expect((HLS.parse(text) as HLS.types.MediaPlaylist).segments).toHaveLength(30);
  feed.segment("720p");
  feed.timeline.interrupted();
  expect(parsed(feed).hasTrailingDiscontinuity).toBe(true);
});

describe("the multivariant playlist", () => {
  test("has the variants with their measured bitrates and the audio as a group", async () => {
    const feed = new Feed(timelineOf(), ["720p", "480p", "audio"]);
    feed.segments(3);
    const { text } = await feed.timeline.waitForMultivariantPlaylist();
    const { variants } = HLS.parse(text) as HLS.types.MasterPlaylist;
    expect(variants.map(({ uri, audio }) => [uri, audio[0]?.uri])).toEqual([
      ["720p/live.m3u8", "audio/live.m3u8"],
      ["480p/live.m3u8", "audio/live.m3u8"],
    ]);
    // Both tracks have 100,000 bytes/s and a header of 76 bytes in 4 s.
    const bandwidth = (2 * 8 * 400_076) / 4;
    expect(variants[0]).toMatchObject({ bandwidth, averageBandwidth: bandwidth, frameRate: 30 });
    expect(variants[0]).toMatchObject({ codecs: "avc1.64001f,mp4a.40.2", resolution: { width: 1280, height: 720 } });
  });

  test("of audio alone has it as a variant", async () => {
    const feed = new Feed(timelineOf(), ["audio"]);
    feed.segments(1);
    const { text } = await feed.timeline.waitForMultivariantPlaylist();
    const { variants } = HLS.parse(text) as HLS.types.MasterPlaylist;
    expect(variants).toMatchObject([{ uri: "audio/live.m3u8", codecs: "mp4a.40.2", audio: [] }]);
  });
});

describe("events that contradict each other", () => {
  const valid = { track: "720p", segment: 1, bytes: 10, durationSeconds: 1, startSeconds: 0, name: "00001.m4s" };
  test.each([
    { track: "1080p" },
    { bytes: 0 },
    { bytes: 1.5 },
    { durationSeconds: 0 },
    { durationSeconds: Number.NaN },
    { durationSeconds: 1e9 },
    { startSeconds: Number.NaN },
    { startSeconds: 1e300 },
    { segment: -1 },
    { name: "../x" },
    { name: "a\nb" },
  ])("are refused: %o", (wrong) => {
    const { timeline } = new Feed(timelineOf());
    expect(() => timeline.segment({ ...valid, ...wrong })).toThrow(RangeError);
    timeline.segment(valid);
    expect(() => timeline.segment({ ...valid, segment: 3 })).toThrow(RangeError);
    expect(() => timeline.segment(valid)).toThrow(RangeError);
  });

  test("may begin before the timeline", () => {
    const feed = new Feed(timelineOf());
    feed.timeline.segment({ ...valid, startSeconds: -0.02 });
    expect(parsed(feed).segments[0]?.date).toBe(STARTED_AT - 20);
  });

  test("are refused among parts and tracks", () => {
    const { timeline } = new Feed(timelineOf());
    const part = { ...valid, part: 0, offset: 76, isIndependent: true };
    expect(() => timeline.part({ ...part, part: 1 })).toThrow(RangeError);
    timeline.part(part);
    expect(() => timeline.part(part)).toThrow(RangeError);
    expect(() => timeline.part({ ...part, part: 1, offset: 80 })).toThrow(RangeError);
    expect(() => timeline.init({ track: "720p", kind: "video", codec: "avc1.64001f" })).toThrow(RangeError);
    expect(() => timeline.resumed(STARTED_AT)).toThrow(RangeError);
  });
});
