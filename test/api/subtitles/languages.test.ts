import { beforeEach, describe, expect, test } from "vitest";
import { type TestApp, testApp } from "#test/support/app.ts";
import { expectError } from "#test/support/error.ts";
import { readyAsset } from "#test/support/flow.ts";
import { subtitled, subtitleForm } from "#test/support/subtitles.ts";

/*
 * Languages of BCP 47 with private subtags (RFC 5646, 2.2.7), as text tracks of sources have them, wherever a language is accepted.
 */

let app: TestApp;
let key: string;
let asset: { id: number; external_id: string };
beforeEach(async () => {
  app = await testApp();
  key = await app.key((await app.tenant()).id);
  ({ asset } = await readyAsset(app, key, { playback_policy: "public" }));
});
const at = (rest: string) => `/api/v1/assets/${asset.id}/${rest}`;
const audioForm = (language: string) => {
  const form = new FormData();
  for (const [name, value] of Object.entries({ language, name: "Own", role: "alternate" })) form.append(name, value);
  form.append("file", new Blob(["audio"]), "a.wav");
  return form;
};
const mux = (method: string, path: string, body: unknown) =>
  app.call(method, `/mux/video/v1/assets/${asset.id}${path}`, {
    body,
    headers: { authorization: `Basic ${Buffer.from(`id:${key}`).toString("base64")}` },
  });

type Way = (language: string) => Promise<{ status: number; body: any }>;
const WAYS: Record<string, Way> = {
  "POST subtitles": (language) => app.call("POST", at("subtitles"), { key, raw: subtitleForm({ language }) }),
  "PATCH subtitles": async (language) => {
    const { id } = await subtitled(app, key, asset.id, { language: "fr" });
    return app.call("PATCH", at(`subtitles/${id}`), { key, body: { language } });
  },
  "POST audio_tracks": (language) => app.call("POST", at("audio_tracks"), { key, raw: audioForm(language) }),
  "PATCH audio_tracks": async (language) => {
    const { body } = await app.call("POST", at("audio_tracks"), { key, raw: audioForm("fr") });
    return app.call("PATCH", at(`audio_tracks/${body.id}`), { key, body: { language } });
  },
};
const TAGS: [tag: string, canonical: string][] = [
  ["und", "und"],
  ["en-x-forced", "en-x-forced"],
  ["EN-us-X-Sdh", "en-US-x-sdh"],
  ["und-x-track3", "und-x-track3"],
  ["qaa-x-a-1", "qaa-x-a-1"],
];
const REFUSED = [
  "x-forced",
  "en-x",
  "en-x-",
  "en-x-toolongtag",
  "en-u-ca-buddhist",
  "en-u-ca-buddhist-x-a",
  "xx-x-a",
  "en_x_a",
];

describe.each(Object.entries(WAYS))("%s", (_, way) => {
  test.each(TAGS)("takes %s as %s", async (tag, canonical) => {
    const { status, body } = await way(tag);
    expect([200, 201]).toContain(status);
    expect(body.language).toBe(canonical);
  });

  test.each(REFUSED)("refuses %s", async (tag) => {
    expectError((await way(tag)) as never, 422, "invalid_language");
  });
});

test("a track of a language and one with a private subtag are two tracks, and each is unique", async () => {
  for (const language of ["en", "en-x-forced"]) await subtitled(app, key, asset.id, { language, label: language });
  const again = await app.call("POST", at("subtitles"), { key, raw: subtitleForm({ language: "EN-X-FORCED" }) });
  expectError(again, 422, "language_taken");
  const { body: tracks } = await app.call("GET", at("subtitles"), { key });
  // What a track has may be set again.
  for (const { id, language } of tracks)
    expect((await app.call("PATCH", at(`subtitles/${id}`), { key, body: { language } })).status).toBe(200);
  const text = await app.call("GET", at("transcript?language=en-x-forced"), { key });
  expect([text.status, text.text.trim()]).toEqual([200, "Hello"]);
  const { body: found } = await app.as(key).searchAssets({ q: "hello", language: "en-x-forced" });
  expect(found).toMatchObject([{ asset_id: asset.id }]);
  // Players compare the language with that of the audio.
  const { text: master } = await app.call("GET", `/media/${asset.external_id}/master.m3u8`);
  expect(master.match(/TYPE=SUBTITLES[^\n]*/g)?.map((line) => /LANGUAGE="([^"]*)"/.exec(line)?.[1])).toEqual([
    "en",
    "en",
  ]);
});

test("Mux's API has the same languages", async () => {
  const { id } = await subtitled(app, key, asset.id, { language: "en-x-forced" });
  const { body } = await mux("GET", "", undefined);
  const [track] = body.data.tracks.filter(({ type }: { type: string }) => type === "text");
  expect(track).toMatchObject({ language_code: "en-x-forced" });
  expect((await mux("PATCH", `/tracks/${track.id}`, { language_code: "de-AT-x-easy" })).status).toBe(200);
  expect((await app.call("GET", at(`subtitles/${id}`), { key })).body.language).toBe("de-AT-x-easy");
});

test("uploads, channels and tenants take them as languages of captions", async () => {
  const upload = { filename: "a.mp4", bytes_expected: 10, captions: ["en-x-easy"] };
  expect((await app.as(key).initiateUpload(upload)).status).toBe(201);
  const channel = { channel: "own", captions: ["en-x-easy"] };
  const made = await app.as(key).createChannel(channel);
  expect([made.status, made.body.captions]).toEqual([201, ["en-x-easy"]]);
});
