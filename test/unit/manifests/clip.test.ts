import { describe, expect, test } from "vitest";
import { runToEnd } from "#src/lib/base/sliced.ts";
import { ClipFault } from "#src/lib/manifests/clip/fault.ts";
import { clipPlaylists, cutAlong, cutMain } from "#src/lib/manifests/clip/hls.ts";
import { cutMpd } from "#src/lib/manifests/clip/mpd.ts";
import { mediaPlaylist } from "#src/lib/manifests/m3u8.ts";
import { staticMpd } from "#src/lib/manifests/mpd.ts";
import { isShared, numberedFiles, SharedPaths } from "#src/lib/manifests/shared-media.ts";
import { clippedVtt } from "#src/lib/subtitles/vtt/clip.ts";
import { parsing } from "#src/lib/subtitles/vtt/parse.ts";
import { fc } from "#test/support/property.ts";

const name = (number: number) => `${String(number).padStart(5, "0")}.m4s`;
const playlist = (durations: readonly number[]) =>
  mediaPlaylist({
    version: 7,
    initUri: "init.mp4",
    targetDurationSeconds: 6,
    segments: durations.map((durationSeconds, index) => ({ uri: name(index + 1), durationSeconds })),
  });
const uris = (text: Uint8Array) =>
  [
    ...Buffer.from(text)
      .toString()
      .matchAll(/^\d+\.m4s$/gm),
  ].map(([uri]) => uri);

describe("numbered files", () => {
  test.each([
    [["a/00001.m4s", "a/00002.m4s"], { before: "a/", digits: 5, first: 1, last: 2, after: ".m4s" }],
    [["s-9.ts", "s-10.ts"], { before: "s-", digits: 1, first: 9, last: 10, after: ".ts" }],
    [["09.m4s", "10.m4s", "10.m4s"], { before: "", digits: 2, first: 9, last: 10, after: ".m4s" }],
    [["a.m4s"], null],
    [["1.m4s", "3.m4s"], null],
    [["2.m4s", "1.m4s"], null],
    [["09.m4s", "9.m4s"], null],
    [["a/1.m4s", "b/2.m4s"], null],
    [["1234567890123456.m4s"], null],
  ])("%j", (paths, run) => expect(numberedFiles(paths)).toEqual(run));

  test("contain exactly their names, for one clip and for many", () => {
    const runs = fc.array(fc.tuple(fc.integer({ min: 0, max: 300 }), fc.integer({ min: 0, max: 50 })), {
      maxLength: 20,
    });
    fc.assert(
      fc.property(runs, fc.integer({ min: 0, max: 400 }), (clips, number) => {
        const all = new SharedPaths();
        const media = clips.map(([first, length]) => ({
          startSeconds: 0,
          segments: [{ before: "v/", digits: 5, first, last: first + length, after: ".m4s" }],
          objects: ["v/init.mp4"],
        }));
        for (const one of media) all.add(one);
        const path = `v/${name(number)}`;
        const isIn = clips.some(([first, length]) => number >= first && number <= first + length);
        expect(media.some((one) => isShared(one, path))).toBe(isIn);
        expect(all.has(path)).toBe(isIn);
        expect(all.has(`w/${name(number)}`)).toBe(false);
        expect(all.has("v/init.mp4")).toBe(clips.length > 0);
      }),
    );
    const media = {
      startSeconds: 0,
      segments: [{ before: "v/", digits: 5, first: 1, last: 9, after: ".m4s" }],
      objects: [],
    };
    for (const path of [
      "v/1.m4s",
      "v/000001.m4s",
      "v/00001.m4s/x",
      "v/+0001.m4s",
      "v/1e000.m4s",
      "v/00001m4s",
      "00001.m4s",
      "v/.m4s",
    ])
      expect(isShared(media, path), path).toBe(false);
  });
});

describe("playlists", () => {
  const master = [
    "#EXTM3U",
    '#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="a",NAME="English",URI="audio/playlist.m3u8"',
    '#EXT-X-STREAM-INF:BANDWIDTH=2,RESOLUTION=1x1,AUDIO="a"',
    "high/playlist.m3u8",
    '#EXT-X-STREAM-INF:BANDWIDTH=1,RESOLUTION=1x1,AUDIO="a"',
    "low/playlist.m3u8",
    '#EXT-X-STREAM-INF:BANDWIDTH=1,CODECS="mp4a.40.2"',
    "audio/playlist.m3u8",
    '#EXT-X-I-FRAME-STREAM-INF:BANDWIDTH=1,URI="high/iframes.m3u8"',
    "",
  ].join("\n");

  test("of a master playlist are each named once", () => {
    expect(clipPlaylists(master, "film/master.m3u8")).toEqual([
      { kind: "main", path: "film/high/playlist.m3u8" },
      { kind: "main", path: "film/low/playlist.m3u8" },
      { kind: "audio", path: "film/audio/playlist.m3u8" },
      { kind: "frames", path: "film/high/iframes.m3u8" },
    ]);
    for (const more of [
      '#EXT-X-MEDIA:TYPE=SUBTITLES,GROUP-ID="s",NAME="English",URI="s.m3u8"',
      '#EXT-X-SESSION-KEY:METHOD=SAMPLE-AES,URI="skd://key"',
      '#EXT-X-I-FRAME-STREAM-INF:BANDWIDTH=1,URI="https://example.com/frames.m3u8"',
    ])
      expect(() => clipPlaylists(`${master}${more}\n`, "master.m3u8"), more).toThrow(ClipFault);
  });

  test("are cut to whole segments around any range", () => {
    const lengths = fc.array(fc.integer({ min: 1, max: 6000 }), { minLength: 1, maxLength: 40 });
    fc.assert(
      fc.property(
        lengths,
        fc.double({ min: 0, max: 1, noNaN: true }),
        fc.double({ min: 0, max: 1, noNaN: true }),
        (ms, a, b) => {
          const durations = ms.map((each) => each / 1000);
          const total = durations.reduce((sum, each) => sum + each, 0);
          const start = Math.min(a, b) * total;
          const end = Math.max(a, b) * total;
          if (end - start < 0.01) return;
          const text = playlist(durations);
          const cut = cutMain(text, "v/playlist.m3u8", { start, end });
          expect(cut.start).toBeLessThanOrEqual(start + 0.0021);
          expect(cut.end).toBeGreaterThanOrEqual(end - 0.0021);
          const inside = durations.filter((_, index) => {
            const from = durations.slice(0, index).reduce((sum, each) => sum + each, 0);
            return from >= cut.start - 1e-6 && from < cut.end - 1e-6;
          });
          expect(uris(cut.text)).toHaveLength(inside.length);
          expect(cut.segments.last - cut.segments.first + 1).toBe(inside.length);
          // Another rendition with the same boundaries is cut in the same way.
          expect(cutAlong(text, { kind: "main", path: "w/playlist.m3u8" }, cut).text).toEqual(cut.text);
        },
      ),
    );
  });

  test("of audio begin within a packet of the video, or before it", () => {
    const audio = (first: number) => playlist([first, 4, 4, 4]);
    const cut = (text: string) =>
      uris(cutAlong(text, { kind: "audio", path: "a/playlist.m3u8" }, { start: 4, end: 12 }).text);
    expect(cut(audio(4.011))).toEqual(["00002.m4s", "00003.m4s"]);
    expect(cut(audio(3.99))).toEqual(["00002.m4s", "00003.m4s"]);
    // The video was copied with keyframes of its own.
    expect(cut(audio(5.5))).toEqual(["00001.m4s", "00002.m4s", "00003.m4s"]);
  });

  test.each([0.04, 0.08, 0.15])("of audio have a segment for a range of %d s", (end) => {
    const cut = cutAlong(playlist([end + 0.011]), { kind: "audio", path: "a/playlist.m3u8" }, { start: 0, end });
    expect(uris(cut.text)).toEqual(["00001.m4s"]);
  });

  test.each([
    ["of other boundaries", playlist([3, 3, 3, 3])],
    ["that end before the range", playlist([4, 1])],
    ["with byte ranges", '#EXTM3U\n#EXT-X-MAP:URI="i"\n#EXTINF:4,\n#EXT-X-BYTERANGE:9@0\n1.m4s\n#EXT-X-ENDLIST\n'],
    ["of MPEG-TS", "#EXTM3U\n#EXTINF:4,\n1.ts\n#EXT-X-ENDLIST\n"],
    [
      "with several init segments",
      `${playlist([4, 4]).replace("#EXT-X-ENDLIST\n", "")}#EXT-X-MAP:URI="b"\n#EXTINF:4,\n00003.m4s\n#EXT-X-ENDLIST\n`,
    ],
    ["with a discontinuity", playlist([4, 4, 4]).replace("00002.m4s", "00002.m4s\n#EXT-X-DISCONTINUITY")],
    ["that are encrypted", playlist([4, 4, 4]).replace("#EXTINF", '#EXT-X-KEY:METHOD=AES-128,URI="k"\n#EXTINF')],
    ["elsewhere", playlist([4, 4, 4]).replaceAll("0000", "https://example.com/0000")],
    ["without an end", playlist([4, 4, 4]).replace("#EXT-X-ENDLIST", "")],
  ])("%s are refused", (_, text) => {
    expect(() => cutAlong(text, { kind: "main", path: "v/playlist.m3u8" }, { start: 4, end: 12 })).toThrow(ClipFault);
  });
});

describe("a DASH manifest", () => {
  const times = (durations: readonly number[]) => {
    let start = 0;
    return durations.map((duration) => {
      start += duration;
      return { start: start - duration, duration };
    });
  };
  const mpd = staticMpd({
    profile: "urn:mpeg:dash:profile:isoff-live:2011",
    durationSeconds: 14,
    maxSegmentSeconds: 4,
    initTemplate: "$RepresentationID$/init.mp4",
    mediaTemplate: "$RepresentationID$/$Number%05d$.m4s",
    sets: [
      {
        kind: "video",
        language: null,
        isMain: true,
        representations: [
          {
            id: "v",
            bandwidth: 1,
            codec: "avc1.64001e",
            timescale: 12_800,
            segments: times([51_200, 51_200, 51_200, 25_600]),
            video: { width: 320, height: 180, frameRate: "25" },
          },
        ],
      },
      {
        kind: "audio",
        language: "en",
        isMain: true,
        representations: [
          {
            id: "a",
            bandwidth: 1,
            codec: "mp4a.40.2",
            timescale: 48_000,
            segments: times([192_512, 191_488, 192_512, 96_256]),
            audio: { sampleRate: 48_000, channels: 2 },
          },
        ],
      },
    ],
    tiles: {
      mediaTemplate: "sheet.jpg",
      bytes: 1,
      columns: 1,
      rows: 1,
      tileWidth: 1,
      tileHeight: 1,
      intervalSeconds: 14,
    },
  });
  const shared = (first: number, last: number) => ({
    startSeconds: 4,
    segments: ["v/", "a/"].map((before) => ({ before, digits: 5, first, last, after: ".m4s" })),
    objects: ["v/init.mp4", "a/init.mp4"],
  });
  const range = { start: 4, end: 12 };

  test("is cut in the timescale of each representation", () => {
    const cut = cutMpd(mpd, "manifest.mpd", range, shared(2, 3));
    // Until the end of the last packet of audio.
    expect(cut).toContain('mediaPresentationDuration="PT8.011S"');
    expect(cut).toContain('<Period id="0" start="PT0S" duration="PT8.011S">');
    expect(cut).toMatch(
      /timescale="12800"[^>]*startNumber="2" presentationTimeOffset="51200">\s*<SegmentTimeline>\s*<S t="51200" d="51200" r="1"\/>\s*</,
    );
    expect(cut).toMatch(
      /timescale="48000"[^>]*startNumber="2" presentationTimeOffset="192000">\s*<SegmentTimeline>\s*<S t="192512" d="191488"\/>\s*<S t="384000" d="192512"\/>\s*</,
    );
    expect(cut).not.toContain("sheet.jpg");
    expect(cut).toContain('lang="en"');
    // Again, from 8 s: the offsets remain those of the media.
    const again = cutMpd(cut, "manifest.mpd", { start: 4, end: 8 }, shared(3, 3));
    expect(again).toMatch(
      /startNumber="3" presentationTimeOffset="102400">\s*<SegmentTimeline>\s*<S t="102400" d="51200"\/>/,
    );
  });

  test.each([
    ["refers to other segments", mpd, shared(2, 2)],
    ["is dynamic", mpd.replace('type="static"', 'type="dynamic"'), shared(2, 3)],
    ["has several periods", mpd.replace("</MPD>", "<Period/></MPD>"), shared(2, 3)],
    ["has no timeline", mpd.replaceAll(/<SegmentTimeline>.*?<\/SegmentTimeline>/gs, ""), shared(2, 3)],
    ["is protected", mpd.replace("<Role", "<ContentProtection/><Role"), shared(2, 3)],
    ["is not XML", "MPD", shared(2, 3)],
    ["repeats a segment to the end", mpd.replace('r="2"', 'r="-1"'), shared(2, 3)],
  ])("that %s is refused", (_, text, objects) => {
    expect(() => cutMpd(text, "manifest.mpd", range, objects)).toThrow(ClipFault);
  });
});

test("a cut WebVTT text is valid, and has the cues that overlap the range", () => {
  const time = (ms: number) => new Date(ms).toISOString().slice(11, 23);
  const cues = fc.array(fc.tuple(fc.integer({ min: 0, max: 50_000 }), fc.integer({ min: 1, max: 9000 })), {
    maxLength: 30,
  });
  fc.assert(
    fc.property(
      cues,
      fc.integer({ min: 0, max: 50_000 }),
      fc.integer({ min: 1, max: 20_000 }),
      (all, startMs, length) => {
        const endMs = startMs + length;
        const source = `WEBVTT\n\n${all.map(([from, ms], index) => `${index}\n${time(from)} --> ${time(from + ms)}\nText ${index}\n`).join("\n")}`;
        const { text, cues } = runToEnd(clippedVtt(source, { startMs, endMs }));
        const { cues: written, faults } = runToEnd(parsing(text));
        const expected = all.flatMap(([from, ms], index) =>
          from < endMs && from + ms > startMs
            ? [[String(index), Math.max(0, from - startMs), Math.min(from + ms, endMs) - startMs]]
            : [],
        );
        expect(faults).toEqual([]);
        expect(written.map(({ id, startMs, endMs }) => [id, startMs, endMs])).toEqual(expected);
        expect(cues).toBe(expected.length);
      },
    ),
  );
});
