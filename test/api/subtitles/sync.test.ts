import { eq } from "drizzle-orm";
import { beforeEach, describe, expect, test } from "vitest";
import { subtitles } from "#storage/db/schema.ts";
import { type TestApp, testApp } from "#test/support/app.ts";
import { expectError } from "#test/support/error.ts";
import { uploaded } from "#test/support/flow.ts";
import { talk } from "#test/support/lib/random-dialogue.ts";
import { fc } from "#test/support/property.ts";
import { subtitled } from "#test/support/subtitles.ts";

let app: TestApp;
let key: string;
let asset: any;
beforeEach(async () => {
  app = await testApp();
  key = await app.key((await app.tenant()).id);
  asset = (await uploaded(app, key)).asset;
  await app.newEvents();
});
const at = (id: number, rest = "", of = asset.id) => `/api/v1/assets/${of}/subtitles/${id}${rest}`;
const sync = (id: number, body?: unknown) => app.call("POST", at(id, "/sync"), { key, body });
const content = async (id: number) => (await app.as(key).getSubtitle(asset.id, id)).body.content;
const add = async (language: string, file: string, fields: Record<string, string> = {}) => {
  const made = await subtitled(app, key, asset.id, { language, ...fields }, file);
  await app.newEvents();
  return made;
};

const time = (ms: number) => new Date(ms).toISOString().slice(11, 23);
type Line = { startMs: number; endMs: number; text: string };
const vtt = (lines: readonly Line[]) =>
  `WEBVTT\n\n${lines.map(({ startMs, endMs, text }) => `${time(startMs)} --> ${time(endMs)}\n${text}\n`).join("\n")}`;
const moved = (lines: readonly Line[], map: (ms: number) => number) =>
  lines.map(({ startMs, endMs, text }) => ({ startMs: Math.round(map(startMs)), endMs: Math.round(map(endMs)), text }));
const film = talk({ cues: 60, seed: 7 });
const few = talk({ cues: 4, seed: 8 });

describe("a track", () => {
  test("takes the times of another one with the same words, and keeps every other byte", async () => {
    const file = [
      "WEBVTT - Kept\r\n\r\nSTYLE\r\n::cue { color: red }\r\n\r\nNOTE 00:00.000 --> is kept apart from its arrow".replace(
        " -->",
        "",
      ),
      ...film.map(
        ({ startMs, endMs, text }, k) =>
          `id ${k}\r\n${time(startMs).slice(3)}   -->\t${time(endMs)} line:${k % 9} align:start\r\n<v Al>${text.toUpperCase().replace(" ", "\r\n")}!`,
      ),
      "",
    ].join("\r\n\r\n");
    const track = await add("en", file);
    const reference = await add("en-GB", vtt(moved(film, (ms) => ms * 1.04 + 5000)));
    const answer = await sync(track.id, { reference_track_id: reference.id });
    expect(answer.status).toBe(200);
    const first = film[0] as Line;
    const last = film.at(-1) as Line;
    expect(answer.body).toMatchObject({
      id: track.id,
      label: track.label,
      source: "upload",
      status: "ready",
      sync: {
        reference_track_id: reference.id,
        strategy: "piecewise",
        match_ratio: 1,
        anchor_count: 60,
        min_offset_seconds: Math.round(first.startMs * 0.04 + 5000) / 1000,
        max_offset_seconds: Math.round(last.startMs * 0.04 + 5000) / 1000,
      },
    });
    expect(answer.headers.get("ratelimit-policy")).toBe('"sync";q=20;w=60');
    let k = 0;
    const expected = file.replaceAll(/(\d\d:\d\d\.\d{3}) {3}-->\t(\S+)/g, () => {
      const { startMs, endMs } = moved(film, (ms) => ms * 1.04 + 5000)[k++] as Line;
      return `${time(startMs).slice(3)}   -->\t${time(endMs)}`;
    });
    expect(await content(track.id)).toBe(expected);
    expect((await app.call("GET", answer.body.url)).text).toBe(expected);
    expect(await app.newEvents()).toEqual([
      {
        type: "video.subtitle.ready",
        tenantId: asset.tenant_id,
        data: {
          asset_id: String(asset.id),
          subtitle_id: track.id,
          language: "en",
          label: track.label,
          source: "upload",
        },
      },
    ]);
  });

  test("with few matches moves by one offset", async () => {
    const track = await add("en", vtt(few));
    const reference = await add("fr", vtt(moved(few, (ms) => ms + 1250)));
    const answer = await sync(track.id, { reference_track_id: reference.id });
    expect(answer.body.sync).toEqual({
      reference_track_id: reference.id,
      strategy: "global_offset",
      match_ratio: 1,
      anchor_count: 4,
      min_offset_seconds: 1.25,
      max_offset_seconds: 1.25,
    });
    expect(await content(track.id)).toBe(await content(reference.id));
  });

  test("timestamp tags move with their cue", async () => {
    const karaoke = moved(few, (ms) => ms).map((line) => ({
      ...line,
      text: `${line.text} <${time(line.startMs + 500)}>on`,
    }));
    const track = await add("en", vtt(karaoke));
    const reference = await add("fr", vtt(moved(few, (ms) => ms + 1250)));
    await sync(track.id, { reference_track_id: reference.id });
    const later = moved(karaoke, (ms) => ms + 1250).map((line) => ({
      ...line,
      text: line.text.replace(/<[^>]*>/, `<${time(line.startMs + 500)}>`),
    }));
    expect(await content(track.id)).toBe(vtt(later));
  });

  test("moved there and back is identical to the byte", async () => {
    const track = await add("en", vtt(film));
    const reference = await add("fr", vtt(film));
    const plans = fc.record({
      by: fc.integer({ min: 0, max: 7_200_000 }),
      isShort: fc.boolean(),
      blanks: fc.constantFrom(" ", "  ", "\t"),
      terminator: fc.constantFrom("\n", "\r\n", "\r"),
    });
    await fc.assert(
      fc.asyncProperty(plans, async ({ by, isShort, blanks, terminator }) => {
        app.advance(3000);
        const written = (ms: number) => time(ms).slice(isShort && ms < 3_600_000 ? 3 : 0);
        const mine = moved(film, (ms) => ms)
          .map(
            ({ startMs, endMs, text }) =>
              `${written(startMs)}${blanks}-->${blanks}${written(endMs)} size:50%\n<b>${text}</b>\n`,
          )
          .join("\n");
        const file = `WEBVTT\n\n${mine}`.replaceAll("\n", terminator);
        for (const [id, text] of [
          [track.id, file],
          [reference.id, vtt(moved(film, (ms) => ms + by))],
        ] as const)
          await app.as(key).updateSubtitle(asset.id, id, { content: text });
        const there = await app
          .as({ admin: app.admin })
          .syncSubtitle(asset.id, track.id, { reference_track_id: reference.id });
        expect(there.body.sync).toMatchObject({ min_offset_seconds: by / 1000, max_offset_seconds: by / 1000 });
        await app.as(key).updateSubtitle(asset.id, reference.id, { content: vtt(film) });
        await app.as({ admin: app.admin }).syncSubtitle(asset.id, track.id, { reference_track_id: reference.id });
        // When all cues needed hours, it is unknown whether they would be omitted otherwise.
        const allNeeded = isShort && film.every(({ startMs }) => startMs + by >= 3_600_000);
        expect(await content(track.id)).toBe(allNeeded ? file.replaceAll(/(?<![\d:])(\d\d:\d\d\.)/g, "00:$1") : file);
      }),
      { numRuns: 25 },
    );
  });
});

describe("without a given reference", () => {
  const isAuto = (id: number) =>
    app.opened.app.write(async (tx) => tx.update(subtitles).set({ source: "auto" }).where(eq(subtitles.id, id)));

  test("the newest automatic track is used, before the default one; never the track itself", async () => {
    const track = await add("en", vtt(few), { is_default: "true" });
    const reference = async (body?: unknown) => (await sync(track.id, body)).body.sync?.reference_track_id;
    await add("it", vtt(few));
    expectError(await sync(track.id), 422, "sync_no_reference");
    const standard = await add("fr", vtt(few), { is_default: "true" });
    expect(await reference()).toBe(standard.id);
    const older = await add("de", vtt(few));
    app.advance(5);
    const younger = await add("es", vtt(few));
    for (const { id } of [younger, older]) await isAuto(id);
    expect(await reference()).toBe(younger.id);
    expect(await reference({})).toBe(younger.id);
    expect(await reference({ reference_track_id: null })).toBe(younger.id);
    expect(await reference({ reference_track_id: standard.id })).toBe(standard.id);
    expect((await sync(younger.id)).body.sync.reference_track_id).toBe(older.id);
  });
});

describe("refused, without changes", () => {
  test("invalid references", async () => {
    const track = await add("en", vtt(few));
    const before = await content(track.id);
    const other = (await uploaded(app, key)).asset;
    const elsewhere = await subtitled(app, key, other.id, {}, vtt(few));
    const strangers = await app.key((await app.tenant()).id);
    const theirs = (await uploaded(app, strangers)).asset;
    const foreign = await subtitled(app, strangers, theirs.id, {}, vtt(few));
    await app.newEvents();
    const told = new Set<string>();
    for (const id of [track.id, elsewhere.id, foreign.id, 987_654, 0, -1]) {
      const answer = await sync(track.id, { reference_track_id: id });
      expectError(answer, 422, "sync_no_reference", String(id));
      told.add(answer.body.error);
    }
    expect(told.size).toBe(1);
    for (const bad of ["1", 1.5, {}, true])
      expectError(await sync(track.id, { reference_track_id: bad }), 422, "validation_failed");
    expectError(await sync(987_654), 404, "not_found");
    expectError(await app.as(key).syncSubtitle(asset.id, elsewhere.id), 404, "not_found");
    expectError(await app.as(strangers).syncSubtitle(asset.id, track.id), 404, "not_found");
    expect(await content(track.id)).toBe(before);
    expect(await app.newEvents()).toEqual([]);
  });

  test("texts with too little in common", async () => {
    const track = await add("en", vtt(film));
    const before = await content(track.id);
    const reference = await add(
      "fr",
      vtt(film.map((line, k) => ({ ...line, text: k < 5 ? line.text : `autre${k} chose${k}` }))),
    );
    const answer = await sync(track.id, { reference_track_id: reference.id });
    expectError(answer, 422, "sync_low_overlap");
    expect(answer.body.error).toContain("5 matching cues, 8 % of the track");
    expect(await content(track.id)).toBe(before);
    expect(await app.newEvents()).toEqual([]);
  });

  test("beyond the limit", async () => {
    const small = await testApp({ rate_limit_sync: "1/60" });
    const own = await small.key((await small.tenant()).id);
    expectError(await small.as(own).syncSubtitle(1, 1), 404, "not_found");
    expectError(await small.as(own).syncSubtitle(1, 1), 429, "rate_limited");
  });
});

test("two concurrent requests: each is applied to the current text, or not at all", async () => {
  const track = await add("en", vtt(film));
  const one = await add("fr", vtt(moved(film, (ms) => ms + 1000)));
  const two = await add("de", vtt(moved(film, (ms) => ms + 2000)));
  const answers = await Promise.all([one, two].map(({ id }) => sync(track.id, { reference_track_id: id })));
  const done = answers.filter(({ status }) => status === 200);
  for (const answer of answers.filter(({ status }) => status !== 200)) expectError(answer, 409, "subtitle_changed");
  expect(await app.newEvents()).toHaveLength(done.length);
  const wanted = await Promise.all([one, two].map(({ id }) => content(id)));
  expect(wanted).toContain(await content(track.id));
  app.advance(3_600_001);
  await app.runTask("sweep-objects");
  const stored = await app.opened.app.objects?.list(`tenants/${asset.tenant_id}/assets/${asset.id}/subtitles/`);
  expect(stored?.objects).toHaveLength(3);
});
