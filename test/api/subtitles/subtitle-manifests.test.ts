import HLS from "hls-parser";
import { parse as parseMpd } from "mpd-parser";
import { beforeEach, describe, expect, test } from "vitest";
import { withSubtitles } from "#src/lib/manifests/m3u8-subtitles.ts";
import { editMaster } from "#src/lib/manifests/master-edits.ts";
import { mpdWithSubtitles } from "#src/lib/manifests/mpd.ts";
import { editMpd } from "#src/lib/manifests/mpd-edits.ts";
import { type TestApp, testApp } from "#test/support/app.ts";
import { readyAsset } from "#test/support/flow.ts";
import { subtitled, VTT } from "#test/support/subtitles.ts";

let app: TestApp;
let key: string;
beforeEach(async () => {
  app = await testApp();
  key = await app.key((await app.tenant()).id);
});

const inMaster = (text: string, tracks: Parameters<typeof withSubtitles>[0]) =>
  editMaster(text, [withSubtitles(tracks)]);
const inMpd = (text: string, tracks: Parameters<typeof mpdWithSubtitles>[0]) =>
  editMpd(text, [mpdWithSubtitles(tracks)]);

type Shown = { name: string; language: string; uri: string; isDefault?: boolean; groupId: string };
type Variant = { uri: string; subtitles: Shown[] };
const variantsOf = (text: string) => (HLS.parse(text) as unknown as { variants: Variant[] }).variants;
const tracksOf = (text: string) => variantsOf(text)[0]?.subtitles ?? [];
const shown = (text: string) =>
  tracksOf(text).map(({ name, language, isDefault }) => [name, language, Boolean(isDefault)]);

const HOSTILE = 'a "quoted", one\'s\u0085\u2028<b>&\u0007\uFFFE';

describe("manifests contain the current subtitles", () => {
  test("added, renamed, made the default and removed, each with its own ETag", async () => {
    const { asset } = await readyAsset(app, key, { playback_policy: "public" });
    const master = `/media/${asset.external_id}/master.m3u8`;
    const tags: string[] = [];
    const look = async () => {
      const answer = await app.call("GET", master);
      tags.push(answer.headers.get("etag") as string);
      expect(answer.headers.get("cache-control")).toBe("public, no-cache");
      return shown(answer.text);
    };
    expect(await look()).toEqual([]);
    const english = await subtitled(app, key, asset.id);
    expect(await look()).toEqual([["English", "en", false]]);
    await subtitled(app, key, asset.id, { language: "pt-BR", label: "English", is_default: "1" });
    expect(await look()).toEqual([
      ["English", "en", false],
      ["English (2)", "pt-BR", true],
    ]);
    await app.as(key).updateSubtitle(asset.id, english.id, { label: HOSTILE, language: "fr" });
    expect((await look()).map((track) => track.slice(1))).toEqual([
      ["fr", false],
      ["pt-BR", true],
    ]);
    const changed = await app.as(key).updateSubtitle(asset.id, english.id, { role: "forced" });
    expect([changed.status, changed.body.role]).toEqual([200, "forced"]);
    await look();
    expect((await app.call("GET", master)).text).toMatch(/LANGUAGE="fr",DEFAULT=NO,AUTOSELECT=YES,FORCED=YES/);
    await app.as(key).deleteSubtitle(asset.id, english.id);
    expect(await look()).toEqual([["English", "pt-BR", true]]);
    expect(new Set(tags).size).toBe(tags.length);
    const again = await app.call("GET", master, { headers: { "if-none-match": tags.at(-1) as string } });
    expect([again.status, again.text]).toEqual([304, ""]);
    const old = await app.call("GET", master, { headers: { "if-none-match": tags[0] as string } });
    expect(old.status).toBe(200);
  });

  test("with signed playback contain the token in the path, in HLS and DASH", async () => {
    const { asset } = await readyAsset(app, key);
    await subtitled(app, key, asset.id, { is_default: "1" });
    const { body } = await app.as(key).getPlayback(asset.id);
    const [track] = tracksOf((await app.call("GET", body.hls_url)).text);
    expect(track).toMatchObject({ language: "en", name: "English", isDefault: true });
    const list = new URL(track?.uri as string, body.hls_url);
    const answer = await app.call("GET", list.href);
    expect(answer.headers.get("content-type")).toBe("application/vnd.apple.mpegurl");
    const media = HLS.parse(answer.text) as unknown as {
      endlist: boolean;
      segments: { uri: string; duration: number }[];
    };
    expect([media.endlist, media.segments.length, media.segments[0]?.duration]).toEqual([true, 1, 4]);
    const text = await app.call("GET", new URL(media.segments[0]?.uri as string, list).href);
    expect([text.status, text.text]).toEqual([200, VTT]);
    const stranger = await app.call("GET", list.href.replace(/~[^/]+\//, ""));
    expect([stranger.status, stranger.body.code]).toEqual([403, "playback_token_required"]);

    const { text: mpd } = await app.call("GET", body.dash_url);
    const parsed = parseMpd(mpd, { manifestUri: body.dash_url });
    const group = (parsed as any).mediaGroups.SUBTITLES.subs;
    const [named] = Object.values(group) as any[];
    expect(named.language).toBe("en");
    expect((await app.call("GET", named.playlists[0].resolvedUri)).text).toBe(VTT);
  });

  test.each<[string, string]>([
    ["MPEGTS first", "X-TIMESTAMP-MAP=MPEGTS:900000,LOCAL:00:00:00.000"],
    ["LOCAL first", "X-TIMESTAMP-MAP=LOCAL:00:00:00.000,MPEGTS:900000"],
    ["other spelling", "x-timestamp-map = mpegts:900000 , local:00:00.000"],
  ])(
    "do not contain the X-TIMESTAMP-MAP of an uploaded file, with %s, so that no player moves its cues",
    async (_, map) => {
      const { asset } = await readyAsset(app, key, { playback_policy: "public" });
      const cue = "00:01.000 --> 00:03.000\nMAPPED";
      const track = await subtitled(app, key, asset.id, {}, `WEBVTT\n${map}\n\n${cue}\n\n${map}\n`);
      const { body } = await app.as(key).getPlayback(asset.id);
      const [shownTrack] = tracksOf((await app.call("GET", body.hls_url)).text);
      const list = new URL(shownTrack?.uri as string, body.hls_url);
      const { segments } = HLS.parse((await app.call("GET", list.href)).text) as unknown as {
        segments: { uri: string }[];
      };
      const mpd = parseMpd((await app.call("GET", body.dash_url)).text, { manifestUri: body.dash_url });
      const [inDash] = Object.values((mpd as any).mediaGroups.SUBTITLES.subs) as any[];
      const urls = [
        ...segments.map(({ uri }) => new URL(uri, list).href),
        inDash.playlists[0].resolvedUri,
        body.subtitles[0].url,
        track.url,
      ];
      expect(urls).toHaveLength(4);
      for (const url of urls) {
        const { text } = await app.call("GET", url);
        expect(text).toContain(cue);
        expect(text).not.toMatch(/timestamp-map/i);
      }
    },
  );

  test("another asset's and a deleted one's do not exist", async () => {
    const mine = await readyAsset(app, key, { playback_policy: "public" });
    const other = await readyAsset(app, key, { playback_policy: "public" });
    const { id } = await subtitled(app, key, other.asset.id);
    expect((await app.call("GET", `/media/${other.asset.id}/subtitles/${id}.m3u8`)).status).toBe(200);
    expect((await app.call("GET", `/media/${mine.asset.id}/subtitles/${id}.m3u8`)).status).toBe(404);
    await app.as(key).deleteSubtitle(other.asset.id, id);
    expect((await app.call("GET", `/media/${other.asset.id}/subtitles/${id}.m3u8`)).status).toBe(404);
  });
});

const added = {
  ...{ uri: "subtitles/1.m3u8", address: "x.vtt", id: 1, language: "en", label: "English", isDefault: true },
  role: "subtitle" as const,
};

test.each([
  ["subtitle", "en", "FORCED=NO", '<Role schemeIdUri="urn:mpeg:dash:role:2011" value="subtitle"/>'],
  [
    "caption",
    "en-x-sdh",
    'FORCED=NO,CHARACTERISTICS="public.accessibility.transcribes-spoken-dialog,public.accessibility.describes-music-and-sound"',
    '<Accessibility schemeIdUri="urn:tva:metadata:cs:AudioPurposeCS:2007" value="2"/><Role schemeIdUri="urn:mpeg:dash:role:2011" value="caption"/>',
  ],
  [
    "description",
    "en-x-track2",
    'FORCED=NO,CHARACTERISTICS="public.accessibility.describes-video"',
    '<Accessibility schemeIdUri="urn:tva:metadata:cs:AudioPurposeCS:2007" value="1"/><Role schemeIdUri="urn:mpeg:dash:role:2011" value="description"/>',
  ],
  ["forced", "en-x-forced", "FORCED=YES", '<Role schemeIdUri="urn:mpeg:dash:role:2011" value="forced-subtitle"/>'],
] as const)("both manifests state the role %s, and the language that is spoken", (role, language, inHls, inDash) => {
  const track = { ...added, isDefault: false, role, language };
  const master = inMaster("#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=1\na.m3u8", [track]);
  expect(master).toContain(`LANGUAGE="en",DEFAULT=NO,AUTOSELECT=YES,${inHls},URI=`);
  const mpd = inMpd("<MPD><Period></Period></MPD>", [track]);
  expect(mpd).toContain(`lang="en">\n      <Label>English</Label>${inDash}\n`);
});

describe("a manifest from elsewhere", () => {
  test("keeps its subtitles; names and the default stay unique", () => {
    const master = [
      "#EXTM3U",
      '#EXT-X-MEDIA:TYPE=SUBTITLES,GROUP-ID="t,1",NAME="English",LANGUAGE="en",DEFAULT=YES,AUTOSELECT=YES,URI="en.m3u8"',
      '#EXT-X-STREAM-INF:BANDWIDTH=1,CODECS="avc1.640028",SUBTITLES="t,1"',
      "a.m3u8",
      "#EXT-X-STREAM-INF:BANDWIDTH=2",
      "b.m3u8",
    ].join("\r\n");
    const [first, second] = variantsOf(inMaster(master, [added]));
    expect(first?.subtitles.map(({ name, isDefault }) => [name, Boolean(isDefault)])).toEqual([
      ["English", true],
      ["English (2)", false],
    ]);
    expect(second?.subtitles.map(({ name, uri }) => [name, uri])).toEqual([["English", "subtitles/1.m3u8"]]);
  });

  test.each([
    ["a media playlist", "#EXTM3U\n#EXTINF:4,\na.ts\n#EXT-X-ENDLIST\n"],
    ["no playlist", "Hello"],
  ])("%s is unchanged", (_, text) => expect(inMaster(text, [added])).toBe(text));

  test.each([
    ["two periods", "<MPD><Period></Period><Period></Period></MPD>"],
    ["an empty one", "<MPD><Period/></MPD>"],
  ])("%s are unchanged", (_, text) => expect(inMpd(text, [added])).toBe(text));

  test("a label cannot inject markup into either", () => {
    const evil = { ...added, label: `x",URI="http://evil\n#EXT-X-ENDLIST\r"/></Label><Period>${HOSTILE}` };
    const text = inMaster("#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=1\na.m3u8", [evil]);
    expect(tracksOf(text).map(({ uri }) => uri)).toEqual([added.uri]);
    expect(text).not.toMatch(/^#EXT-X-ENDLIST/m);
    const mpd = inMpd("<MPD><Period></Period></MPD>", [evil]);
    expect(mpd.match(/<Period>/g)).toHaveLength(1);
    expect(mpd.match(/<\/Label>/g)).toHaveLength(1);
    expect(mpd).not.toMatch(/[^\P{Cc}\n]|\uFFFE/u);
  });
});
