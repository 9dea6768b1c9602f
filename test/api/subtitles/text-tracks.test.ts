import { beforeEach, describe, expect, test } from "vitest";
import { type TestApp, testApp } from "#test/support/app.ts";
import { expectError } from "#test/support/error.ts";
import { callback, next, putArtifacts, type UploadFields, uploaded } from "#test/support/flow.ts";
import { subtitled, VTT } from "#test/support/subtitles.ts";

const MEDIA = { duration_seconds: 4, width: 640, height: 360, frame_rate: 30, renditions: [] };

let app: TestApp;
let key: string;
beforeEach(async () => {
  app = await testApp();
  key = await app.key((await app.tenant()).id);
});
const get = async (path: string) => (await app.call("GET", path, { key })).body;
const tracksOf = (id: number) => get(`/api/v1/assets/${id}/subtitles?include=content`);

async function claimed(fields: UploadFields = {}) {
  const made = await uploaded(app, key, fields);
  const { body: contract } = await next(app);
  await app.newEvents();
  return { ...made, contract };
}

type Track = Record<string, unknown> & { text?: string };

/** Puts the texts of tracks, and completes the job with them. */
async function complete(contract: any, tracks: Record<string, Track>, more: object = {}) {
  const { prefix } = contract.outputs;
  const pathOf = (name: string) => `${prefix}closed-captions/${name.replaceAll("/", "_")}.vtt`;
  const texts = Object.entries(tracks).map(([name, { text = VTT }]) => [pathOf(name), text] as const);
  const paths = await putArtifacts(app, contract, Object.fromEntries(texts));
  const reported = Object.entries(tracks).map(([name, { text: _, ...track }]) => [
    name,
    { path: pathOf(name), ...track },
  ]);
  const closed_captions = { tracks: Object.fromEntries(reported), ...more };
  return callback(app, contract, "complete", { ...paths, media: MEDIA, closed_captions });
}

const rolesOf = (tracks: { role: string }[]) => tracks.map(({ role }) => role);
const shown = (tracks: { language: string; label: string; is_default: boolean }[]) =>
  tracks.map(({ language, label, is_default }) => [language, label, is_default]);

test("each track is a subtitle of its own, in the order of the source, before closed captions", async () => {
  const { asset, contract } = await claimed();
  expect(contract.outputs.read_text_tracks).toBe(true);
  const tracks = {
    cc1: {},
    track10: { language: "ger", kind: "subtitles" },
    track3: { language: "eng", label: "English", kind: "subtitles", is_default: true, skipped_cues: 2 },
    track4: { language: "eng", kind: "captions", is_default: true },
    track5: { language: "eng", kind: "forced" },
    track6: { language: "eng", label: "Commentary", kind: "subtitles" },
    track7: { language: "pt-br", kind: "captions" },
    track8: { language: "not a language", kind: "subtitles" },
    track9: { language: "eng", kind: "forced" },
  };
  expect((await complete(contract, tracks)).status).toBe(200);
  const found = await tracksOf(asset.id);
  expect(shown(found)).toEqual([
    ["en", "English", true],
    ["en-x-sdh", "English (SDH)", false],
    ["en-x-forced", "English (forced)", false],
    ["en-x-track6", "Commentary", false],
    ["pt-BR", "Português (Brasil) (SDH)", false],
    ["und", "Track 8", false],
    ["en-x-forced-track9", "English (forced)", false],
    ["de", "Deutsch", false],
    ["und-x-cc1", "CC1", false],
  ]);
  expect(rolesOf(found)).toEqual([
    ...["subtitle", "caption", "forced", "subtitle", "caption", "subtitle", "forced", "subtitle"],
    "caption",
  ]);
  expect(found[0]).toMatchObject({ source: "upload", status: "ready", content: VTT });
  expect(found[0].warnings).toMatchObject([{ code: "cues_skipped", count: 2 }]);
  expect(found[1].warnings).toEqual([]);
  const events = await app.newEvents();
  expect(events.map(({ type }) => type)).toEqual([...Array(9).fill("video.subtitle.ready"), "video.asset.ready"]);
  // The tags are those of players, too.
  const playback = await get(`/api/v1/playback/${asset.id}`);
  expect(playback.subtitles.map(({ language }: { language: string }) => language)).toContain("en-x-forced");
});

test("subtitles that exist are kept, with their default", async () => {
  const { asset, contract } = await claimed();
  await subtitled(app, key, asset.id, { language: "en", label: "Mine", is_default: "true" });
  const reported = { language: "en", kind: "subtitles", is_default: true };
  expect((await complete(contract, { track3: reported })).status).toBe(200);
  expect(shown(await tracksOf(asset.id))).toEqual([
    ["en", "Mine", true],
    ["en-x-track3", "English", false],
  ]);
});

test("an asset that is encoded again is not asked for them, and keeps what it has", async () => {
  const { asset, contract } = await claimed();
  await complete(contract, { track3: { language: "en" }, track4: { language: "de" } });
  const [first] = await tracksOf(asset.id);
  await app.as(key).deleteSubtitle(asset.id, first.id);
  await app.as(key).reencodeAsset(asset.id, {});
  const { body: again } = await next(app);
  expect(again.outputs).not.toHaveProperty("read_text_tracks");
  expect((await complete(again, { track3: { language: "en" } })).status).toBe(200);
  expect(shown(await tracksOf(asset.id))).toEqual([["de", "Deutsch", false]]);
});

test("what is left out is a warning of the asset, and so is what has no place in it", async () => {
  const { asset, contract } = await claimed();
  const languages = "ar bg cs da de el en es et fi fr he hi hu it ja ko nl pl".split(" ");
  for (const language of languages) await subtitled(app, key, asset.id, { language });
  const message = "Track 9 (subtitles, S_TEXT/ASS) has more text or cues than a subtitle may have and was left out.";
  const warnings = [{ code: "track_skipped", message }];
  const tracks = { track3: { language: "sv" }, track4: { language: "nb", label: "Norsk" } };
  expect((await complete(contract, tracks, { warnings })).status).toBe(200);
  expect((await tracksOf(asset.id)).map(({ language }: { language: string }) => language)).toHaveLength(20);
  expect((await get(`/api/v1/assets/${asset.id}`)).warnings).toEqual([
    ...warnings,
    { code: "track_skipped", message: expect.stringContaining('The subtitles "Norsk" were left out') },
  ]);
});

test("an asset that is deleted before its job is complete has none", async () => {
  const { asset, contract } = await claimed();
  const path = `${contract.outputs.prefix}closed-captions/track3.vtt`;
  const paths = await putArtifacts(app, contract, { [path]: VTT });
  await app.as(key).deleteAsset(asset.id);
  const closed_captions = { tracks: { track3: { path, language: "en" } } };
  expectError(await callback(app, contract, "complete", { ...paths, media: MEDIA, closed_captions }), 404, "not_found");
  expect(await app.newEvents()).toMatchObject([{ type: "video.asset.deleted" }]);
});

describe("a completion is refused, and another may follow, with", () => {
  const REFUSED: [string, Record<string, Track>, string][] = [
    ["no WebVTT", { track3: { text: "1\n00:00 -> x" } }, "invalid_transcoding_result"],
    ["a text without cues", { track3: { text: "WEBVTT\n" } }, "invalid_transcoding_result"],
    ["a name that is a path", { "track3/../x": {} }, "validation_failed"],
    ["another kind", { track3: { kind: "lyrics" } }, "validation_failed"],
    ["a label that is too long", { track3: { label: "x".repeat(201) } }, "validation_failed"],
    ["a count that is none", { track3: { skipped_cues: -1 } }, "validation_failed"],
    [
      "too many tracks",
      Object.fromEntries(Array.from({ length: 21 }, (_, index) => [`track${index + 1}`, {}])),
      "validation_failed",
    ],
  ];
  test.each(REFUSED)("%s", async (_, tracks, code) => {
    const { asset, contract } = await claimed();
    expectError(await complete(contract, tracks), 422, code);
    expect(await tracksOf(asset.id)).toEqual([]);
    expect((await complete(contract, { track3: { label: "\u001b[31m " } })).status).toBe(200);
    expect(shown(await tracksOf(asset.id))).toEqual([["und", "\ufffd[31m", false]]);
  });
});
