import { sql } from "drizzle-orm";
import { beforeAll, expect, test } from "vitest";
import { type TestApp, testApp } from "#test/support/app.ts";
import { type Files, JPEG, leased, tiny, tinyAsset } from "#test/support/batches.ts";
import { master, media, mpd, representation, segment, template, timeline } from "#test/support/manifests.ts";

let app: TestApp;
let key: string;
let batch: Awaited<ReturnType<typeof leased>>;
beforeAll(async () => {
  app = await testApp({ rate_limit_uploads: "100000/60" });
  key = await app.key((await app.tenant()).id);
  batch = await leased(app, key);
  await batch.putAll({ ...tiny(), "thumbnail.jpg": JPEG, "key.bin": "sixteen bytes ok", "en.vtt": VTT });
  return app.close;
});

const VTT = "WEBVTT\n\n00:00.000 --> 00:01.000\nHello\n";
let serial = 0;
/** Puts `text` under a new name and checks a manifest that refers to it. */
async function look(text: string, extension: string, more: Record<string, unknown> = {}) {
  const name = `try-${++serial}.${extension}`;
  await batch.put(name, text);
  const given =
    extension === "mpd"
      ? tinyAsset("", { dash: { manifest_path: name }, ...more })
      : tinyAsset("", { hls: { manifest_path: name }, ...more });
  return (await batch.preview({ assets: [given] })).body;
}
const told = (answer: any) => answer.errors.map(({ path, code }: { path: string; code: string }) => `${path} ${code}`);

test("a valid manifest is reported as valid", async () => {
  const answer = await batch.preview({
    assets: [
      tinyAsset("", {
        thumbnail_path: "thumbnail.jpg",
        subtitles: [{ language: "en", label: "English", path: "en.vtt" }],
        tracks: [{ kind: "chapter", cues: [] }],
      }),
    ],
  });
  expect(answer.body).toEqual({
    valid: true,
    errors: [],
    assets: [
      {
        index: 0,
        title: "Tiny",
        valid: true,
        duration_seconds: 6.5,
        object_count: 6,
        storage_bytes: answer.body.assets[0].storage_bytes,
        renditions: [
          {
            name: "360p",
            width: 640,
            height: 360,
            bandwidth: 800000,
            codecs: "avc1.64001e",
            playlist_path: "low/playlist.m3u8",
          },
        ],
      },
    ],
  });
});

const HLS: [string, string, string[]][] = [
  ["no playlist", "hello", ["playlist_malformed"]],
  ["an empty file that is none", "\n", ["playlist_malformed"]],
  ["a byte order mark", `\ufeff${segment("low/1.m4s")}`, ["playlist_malformed"]],
  ["no segment", media(), ["playlist_malformed"]],
  ["no end", segment("low/1.m4s").replace("#EXT-X-ENDLIST\n", ""), ["playlist_not_ended"]],
  ["a segment that is not there", segment("low/9.m4s"), ["object_missing"]],
  ["another case", segment("low/1.M4S"), ["object_missing"]],
  ["an address elsewhere", segment("https://example.com/1.m4s"), ["reference_not_relative"]],
  ["a scheme in capitals", segment("FILE:///etc/passwd"), ["reference_not_relative"]],
  ["data in the address", segment("data:video/mp4;base64,AAAA"), ["reference_not_relative"]],
  ["another host", segment("//example.com/1.m4s"), ["reference_not_relative"]],
  ["the root", segment("/low/1.m4s"), ["reference_not_relative"]],
  ["a backslash for a root", segment("\\low\\1.m4s"), ["reference_not_relative"]],
  ["a backslash within", segment("low\\1.m4s"), ["reference_malformed"]],
  ["out of the batch", segment("../low/1.m4s"), ["reference_outside"]],
  ["out of the batch after all", segment("low/../../1.m4s"), ["reference_outside"]],
  ["dots in disguise", segment("%2e%2e/low/1.m4s"), ["reference_malformed"]],
  ["a slash in disguise", segment("low%2F1.m4s"), ["reference_malformed"]],
  ["a broken escape", segment("low/%zz.m4s"), ["reference_malformed"]],
  ["a query", segment("low/1.m4s?token=x"), ["reference_malformed"]],
  ["a fragment", segment("low/1.m4s#t=1"), ["reference_malformed"]],
  ["a variant that is not there", master("high/playlist.m3u8"), ["object_missing"]],
  ["a variant that is no playlist", master("low/1.m4s"), ["playlist_malformed"]],
  ["a variant that is a master", master("master.m3u8"), ["playlist_malformed"]],
  [
    "audio elsewhere",
    master("low/playlist.m3u8", '#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="a",NAME="a",URI="https://example.com/a.m3u8"'),
    ["reference_not_relative"],
  ],
  [
    "missing audio",
    master("low/playlist.m3u8", '#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="a",NAME="a",URI="a.m3u8"'),
    ["object_missing"],
  ],
  [
    "I-frames that are not there",
    master("low/playlist.m3u8", '#EXT-X-I-FRAME-STREAM-INF:BANDWIDTH=1,URI="i.m3u8"'),
    ["object_missing"],
  ],
  [
    "session data elsewhere",
    master("low/playlist.m3u8", '#EXT-X-SESSION-DATA:DATA-ID="a",URI="//a/b"'),
    ["reference_not_relative"],
  ],
  [
    "a key elsewhere",
    media('#EXT-X-KEY:METHOD=AES-128,URI="https://example.com/key"', "#EXTINF:4,", "low/1.m4s"),
    ["reference_not_relative"],
  ],
  [
    "a key of a vendor",
    media('#EXT-X-KEY:METHOD=SAMPLE-AES,URI="skd://key"', "#EXTINF:4,", "low/1.m4s"),
    ["reference_not_relative"],
  ],
  ["a key without an address", media("#EXT-X-KEY:METHOD=AES-128", "#EXTINF:4,", "low/1.m4s"), ["playlist_malformed"]],
  ["a map that is not there", media('#EXT-X-MAP:URI="init.mp4"', "#EXTINF:4,", "low/1.m4s"), ["object_missing"]],
  [
    "a map beyond its file",
    media('#EXT-X-MAP:URI="low/init.mp4",BYTERANGE="15@0"', "#EXTINF:4,", "low/1.m4s"),
    ["range_outside"],
  ],
  ["a range beyond its file", media("#EXTINF:4,", "#EXT-X-BYTERANGE:10@5", "low/1.m4s"), ["range_outside"]],
  [
    "a range that continues beyond it",
    media("#EXTINF:4,", "#EXT-X-BYTERANGE:10@0", "low/1.m4s", "#EXTINF:4,", "#EXT-X-BYTERANGE:10", "low/1.m4s"),
    ["range_outside"],
  ],
  ["a continued range without a start", media("#EXTINF:4,", "#EXT-X-BYTERANGE:1", "low/1.m4s"), ["playlist_malformed"]],
  ["a range that is none", media("#EXTINF:4,", "#EXT-X-BYTERANGE:all", "low/1.m4s"), ["playlist_malformed"]],
  ["variables", media('#EXT-X-DEFINE:NAME="a",VALUE="low"', "#EXTINF:4,", "low/1.m4s"), ["playlist_unsupported"]],
  [
    "steering",
    master("low/playlist.m3u8", '#EXT-X-CONTENT-STEERING:SERVER-URI="https://example.com"'),
    ["playlist_unsupported"],
  ],
  [
    "an advertisement elsewhere",
    media('#EXT-X-DATERANGE:ID="a",X-ASSET-URI="https://example.com/ad.m3u8"', "#EXTINF:4,", "low/1.m4s"),
    ["reference_not_relative"],
  ],
];

test.each(HLS)("in a playlist: %s", async (_, text, codes) => {
  const answer = await look(text, "m3u8");
  expect(told(answer)).toEqual(codes.map((code) => `assets[0].hls.manifest_path ${code}`));
  expect([answer.valid, answer.assets[0].valid]).toEqual([false, false]);
});

test("in a playlist: a variant that is the master itself", async () => {
  const answer = await look(master(`try-${serial + 1}.m3u8`), "m3u8");
  expect(told(answer)).toEqual(["assets[0].hls.manifest_path playlist_malformed"]);
});

const GOOD_HLS: [string, string][] = [
  ["a key of the batch", media('#EXT-X-KEY:METHOD=AES-128,URI="key.bin"', "#EXTINF:4,", "low/1.m4s")],
  ["no key", media("#EXT-X-KEY:METHOD=NONE", "#EXTINF:4,", "low/1.m4s")],
  [
    "continued ranges",
    media("#EXTINF:4,", "#EXT-X-BYTERANGE:6@0", "low/1.m4s", "#EXTINF:4,", "#EXT-X-BYTERANGE:7", "low/1.m4s"),
  ],
  ["a way around", segment("low/../low/./1.m4s")],
  ["an escape that need not be", segment("low/%31.m4s")],
  ["lines that end in CR LF", segment("low/1.m4s").replaceAll("\n", "\r\n")],
];
test.each(GOOD_HLS)("a playlist may have %s", async (_, text) => {
  expect(await look(text, "m3u8")).toMatchObject({ valid: true, errors: [] });
});

const media2 = 'media="low/$Number$.m4s" initialization="low/init.mp4"';
const DASH: [string, string, string[]][] = [
  ["no XML", "hello", ["manifest_malformed"]],
  ["something else", "<a/>", ["manifest_malformed"]],
  [
    "a document type",
    `<!DOCTYPE MPD [<!ENTITY x SYSTEM "file:///etc/passwd">]>${mpd("<Period/>")}`,
    ["manifest_malformed"],
  ],
  ["an entity of its own", representation("<BaseURL>&x;</BaseURL>"), ["manifest_malformed"]],
  ["an element that is never closed", "<MPD><Period>", ["manifest_malformed"]],
  ["no Period", mpd(""), ["manifest_malformed"]],
  ["no Representation", mpd("<Period><AdaptationSet/></Period>"), ["manifest_malformed"]],
  [
    "what is live",
    template(`${media2} duration="4" endNumber="2"`).replace("static", "dynamic"),
    ["manifest_unsupported"],
  ],
  [
    "a part elsewhere",
    mpd('<Period xlink:href="https://example.com/p.xml"/>'),
    ["reference_not_relative", "manifest_malformed"],
  ],
  ["something included", mpd('<xi:include href="x.xml"/><Period/>'), ["manifest_unsupported", "manifest_malformed"]],
  ["a base elsewhere", representation("<BaseURL>https://example.com/</BaseURL>"), ["reference_not_relative"]],
  ["a base out of the batch", representation("<BaseURL>../x.mp4</BaseURL>"), ["reference_outside"]],
  ["a file that is not there", representation("<BaseURL>low/9.mp4</BaseURL>"), ["object_missing"]],
  ["nothing to play", representation(""), ["manifest_malformed"]],
  ["a template without media", template('initialization="low/init.mp4" duration="4"'), ["manifest_malformed"]],
  ["one segment more than there is", template(`${media2} duration="4" endNumber="3"`), ["object_missing"]],
  ["as many by its duration", template(`${media2} duration="2"`), ["object_missing", "object_missing"]],
  ["one more in its timeline", template(media2, timeline('<S t="0" d="1" r="2"/>')), ["object_missing"]],
  ["no duration", template(media2), ["manifest_malformed"]],
  [
    "a name that is not known",
    template('media="low/$Nobody$.m4s" duration="4" endNumber="1"'),
    ["manifest_malformed", "object_missing"],
  ],
  [
    "an initialization elsewhere",
    template('media="low/$Number$.m4s" initialization="//a/b" duration="4" endNumber="2"'),
    ["reference_not_relative"],
  ],
  ["an empty list", representation("<SegmentList/>"), ["manifest_malformed"]],
  [
    "a list of what is not there",
    representation('<SegmentList><SegmentURL media="low/7.m4s"/></SegmentList>'),
    ["object_missing"],
  ],
  [
    "an index beyond its file",
    representation('<BaseURL>low/1.m4s</BaseURL><SegmentBase indexRange="0-99"/>'),
    ["range_outside"],
  ],
  ["two bases", representation("<BaseURL>low/1.m4s</BaseURL><BaseURL>low/2.m4s</BaseURL>"), ["manifest_unsupported"]],
  ["keys of a vendor", representation("<ContentProtection/><BaseURL>low/1.m4s</BaseURL>"), ["manifest_unsupported"]],
];

test.each(DASH)("in an MPD: %s", async (_, text, codes) => {
  expect(told(await look(text, "mpd"))).toEqual(codes.map((code) => `assets[0].dash.manifest_path ${code}`));
});

const GOOD_DASH: [string, string][] = [
  ["a timeline", template(`${media2} timescale="10"`, timeline('<S t="0" d="40"/><S d="25"/>'))],
  [
    "a timeline that repeats to the end",
    template(media2, timeline('<S t="0" d="3" r="-1"/>')).replace("PT6.5S", "PT6S"),
  ],
  ["a duration", template(`${media2} duration="4"`)],
  ["padded names", template('media="low/$Number%01d$.m4s" duration="4"')],
  ["its own id in names", template('media="$RepresentationID$/$Number$.m4s" duration="4"')],
  [
    "a base and a list",
    representation(
      '<BaseURL>low/</BaseURL><SegmentList><Initialization sourceURL="init.mp4"/><SegmentURL media="1.m4s" mediaRange="0-3"/></SegmentList>',
    ),
  ],
  [
    "one file",
    representation(
      '<BaseURL>low/1.m4s</BaseURL><SegmentBase indexRange="0-3"><Initialization range="0-1"/></SegmentBase>',
    ),
  ],
  ["comments", `<!-- & < -->${representation("<BaseURL>low/1.m4s</BaseURL>")}`],
];
test.each(GOOD_DASH)("an MPD may have %s", async (_, text) => {
  expect(await look(text, "mpd")).toMatchObject({ valid: true, errors: [] });
});

const vtt: Files = {
  "bad.vtt": "WEBVTT\n\nnot a cue --> at all\n",
  "empty.vtt": "WEBVTT\n",
  "latin.vtt": Buffer.from([0xff, 0xfe, 0x41]),
};
const english = (path: string, language = "en") => ({ language, label: "English", path });
const ASSETS: [string, Record<string, unknown>, string[]][] = [
  ["no title", { title: undefined }, ["assets[0].title parameter_missing"]],
  ["a blank title", { title: " " }, ["assets[0].title validation_failed"]],
  ["no HLS", { hls: undefined }, ["assets[0].hls parameter_missing"]],
  ["no manifest", { hls: {} }, ["assets[0].hls.manifest_path parameter_missing"]],
  [
    "a manifest that is not there",
    { hls: { manifest_path: "x.m3u8" } },
    ["assets[0].hls.manifest_path object_missing"],
  ],
  [
    "a manifest out of the batch",
    { hls: { manifest_path: "../master.m3u8" } },
    ["assets[0].hls.manifest_path validation_failed"],
  ],
  [
    "a manifest from the root",
    { hls: { manifest_path: "/master.m3u8" } },
    ["assets[0].hls.manifest_path validation_failed"],
  ],
  ["a negative duration", { duration_seconds: -1 }, ["assets[0].duration_seconds validation_failed"]],
  [
    "an unknown rendition",
    { hls: { manifest_path: "master.m3u8", renditions: [{ playlist_path: "low/1.m4s" }] } },
    ["assets[0].hls.renditions[0].playlist_path rendition_unknown"],
  ],
  [
    "a rendition that is not there",
    { hls: { manifest_path: "master.m3u8", renditions: [{ playlist_path: "x" }] } },
    ["assets[0].hls.renditions[0].playlist_path object_missing"],
  ],
  ["a source that is not there", { source_key: "x.mp4" }, ["assets[0].source_key object_missing"]],
  ["a source that is media", { source_key: "low/1.m4s" }, ["assets[0].source_key source_is_media"]],
  ["an invalid image", { thumbnail_path: "low/1.m4s" }, ["assets[0].thumbnail_path thumbnail_malformed"]],
  ["an MP4 file that is none", { mp4_path: "thumbnail.jpg" }, ["assets[0].mp4_path mp4_malformed"]],
  ["an MP4 file that is not there", { mp4_path: "film.mp4" }, ["assets[0].mp4_path object_missing"]],
  ["a text that is none", { subtitles: [english("bad.vtt")] }, ["assets[0].subtitles[0].path invalid_subtitle"]],
  ["a text without a cue", { subtitles: [english("empty.vtt")] }, ["assets[0].subtitles[0].path invalid_subtitle"]],
  [
    "a text that is not in UTF-8",
    { subtitles: [english("latin.vtt")] },
    ["assets[0].subtitles[0].path invalid_subtitle"],
  ],
  ["no language", { subtitles: [english("en.vtt", "x y")] }, ["assets[0].subtitles[0].language invalid_language"]],
  [
    "a language twice",
    { subtitles: [english("en.vtt"), english("en.vtt", "EN")] },
    ["assets[0].subtitles[1].language language_taken"],
  ],
  ["21 texts", { subtitles: Array(21).fill(english("en.vtt")) }, ["assets[0].subtitles validation_failed"]],
  ["an empty track", { tracks: [{ kind: "chapter" }] }, ["assets[0].tracks[0] cues_or_storage_key_required"]],
  [
    "a bad cue",
    { tracks: [{ kind: "chapter", cues: [{ start_ms: -1, payload: {} }] }] },
    ["assets[0].tracks[0].cues[0].start_ms validation_failed"],
  ],
  [
    "too many cues",
    { tracks: [{ kind: "chapter", cues: Array(501).fill({ start_ms: 0, payload: {} }) }] },
    ["assets[0].tracks[0].cues cues_too_large"],
  ],
  [
    "a track twice",
    {
      tracks: [
        { kind: "scene", cues: [] },
        { kind: "scene", cues: [] },
      ],
    },
    ["assets[0].tracks[1].name validation_failed"],
  ],
  ["an id of the server's kind", { external_id: "vid_mine" }, ["assets[0].external_id validation_failed"]],
  ["tags that are none", { tags: { a: [] } }, ["assets[0].tags.a validation_failed"]],
];

test.each(ASSETS)("in an asset: %s", async (_, fields, errors) => {
  for (const [name, bytes] of Object.entries(vtt)) if (!(await has(name))) await batch.put(name, bytes);
  expect(told((await batch.preview({ assets: [tinyAsset("", fields)] })).body)).toEqual(errors);
});
const has = async (name: string) =>
  (await batch.ask("GET", "/uploads")).body.some((one: { object_key: string }) => one.object_key === name);

test("existing external ids, of another asset or in the manifest itself", async () => {
  const other = await leased(app, key);
  await other.putAll(tiny());
  expect((await other.commit({ assets: [tinyAsset("", { external_id: "taken" })] })).status).toBe(200);
  const ids = ["taken", "once", "once"].map((external_id) => tinyAsset("", { external_id }));
  expect(told((await batch.preview({ assets: ids })).body)).toEqual([
    "assets[0].external_id external_id_taken",
    "assets[2].external_id external_id_taken",
  ]);
});

test("a playlist that is also named as an object is still checked", async () => {
  await batch.put("remote.m3u8", media("#EXTINF:4,", "https://example.com/1.m4s"));
  const named = '#EXT-X-SESSION-DATA:DATA-ID="a",URI="remote.m3u8"';
  expect(told(await look(master("remote.m3u8", named), "m3u8"))).toContain(
    "assets[0].hls.manifest_path reference_not_relative",
  );
});

test("missing objects are found after any number of valid references", async () => {
  const there = Array.from({ length: 1000 }, (_, index) => `#EXTINF:4,\n${"./".repeat(index)}low/1.m4s`);
  const both = ["low/1.m4s", "low/2.m4s", "low/init.mp4"].flatMap((uri) => [
    `#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="a",NAME="a",URI="${uri}"`,
    `#EXT-X-SESSION-DATA:DATA-ID="a",URI="${uri}"`,
  ]);
  const segments = await look(media(...there, "#EXTINF:4,", "missing.m4s"), "m3u8");
  expect(told(segments)).toEqual(["assets[0].hls.manifest_path object_missing"]);
  const twice = await look(master("missing.m3u8", ...both), "m3u8");
  expect(told(twice)).toContain("assets[0].hls.manifest_path object_missing");
});

test("a malformed manifest is refused like any body", async () => {
  for (const [body, code] of [
    [{}, "parameter_missing"],
    [{ assets: {} }, "parameter_missing"],
    [{ assets: [] }, "validation_failed"],
    [{ assets: Array(201).fill({}) }, "validation_failed"],
  ] as const) {
    const answer = await batch.preview(body);
    expect([answer.status, answer.body.code], JSON.stringify(body).slice(0, 50)).toEqual([422, code]);
  }
  const bare = (await batch.preview({ assets: [null, 5, "x", []] })).body;
  expect([bare.valid, bare.errors.length > 3]).toEqual([false, true]);
});

test("none of this created an asset of this batch, or wrote anything", async () => {
  const rows = await app.opened.app.db.all<{ n: number }>(
    sql`select count(*) as n from assets where external_id <> 'taken'`,
  );
  expect(rows).toEqual([{ n: 0 }]);
});
