import { sql } from "drizzle-orm";
import { beforeAll, beforeEach, expect, test } from "vitest";
import { type TestApp, testApp } from "#test/support/app.ts";
import { subtitled, subtitleForm } from "#test/support/subtitles.ts";

type Query = { limit?: number; language?: string; tenant_id?: number };
type Found = { asset_id: number; title: string; matches: { kind: string; text: string; start_ms?: number }[] };

let app: TestApp;
beforeAll(async () => {
  app = await testApp({ rate_limit_uploads: "100000/60" });
});
let tenant: { id: number };
let key: string;
beforeEach(async () => {
  tenant = await app.tenant();
  key = await app.key(tenant.id);
});

const made = async (title: string, fields: Record<string, unknown> = {}, as = key) => {
  const body = { filename: "clip.mp4", bytes_expected: 1, title, ...fields };
  return (await app.as(as).initiateUpload(body)).body.asset_id as number;
};
const time = (second: number) => new Date(second * 1000).toISOString().slice(11, 23);
/** A cue each ten seconds. */
const vtt = (...texts: string[]) =>
  ["WEBVTT", ...texts.map((text, n) => `${time(n * 10)} --> ${time(n * 10 + 5)}\n${text}`)].join("\n\n");
const search = async (q: string, query: Query = {}, as = key): Promise<Found[]> => {
  const answer = await app.as(as).searchAssets({ q, ...query });
  expect(answer.status, answer.text).toBe(200);
  return answer.body;
};
const ids = async (q: string, query: Query = {}) => (await search(q, query)).map(({ asset_id }) => asset_id);
const sections = async () =>
  (await app.opened.app.db.get<{ n: number }>(sql`select count(*) as n from search_sections`)).n;

test("words are found in titles, descriptions, captions and chapters, with the times of the last two", async () => {
  const id = await made("Harbour tour", { description: "How the old lighthouse works" });
  await subtitled(app, key, id, {}, vtt("Welcome aboard", "The lighthouse was built in 1820", "Goodbye"));
  const cues = [{ start_ms: 61_000, payload: { title: "Inside the lighthouse" } }];
  await app.as(key).setTrack(id, { kind: "chapter", cues });
  expect(await search("lighthouse")).toEqual([
    {
      asset_id: id,
      title: "Harbour tour",
      matches: [
        { kind: "description", text: "How the old lighthouse works" },
        { kind: "caption", text: "The lighthouse was built in 1820", start_ms: 10_000 },
        { kind: "chapter", text: "Inside the lighthouse", start_ms: 61_000 },
      ],
    },
  ]);
  // All words must be there, in whatever text.
  expect(await ids("harbour goodbye")).toEqual([id]);
  expect(await ids("harbour submarine")).toEqual([]);
});

test("words are compared without case, diacritics and endings", async () => {
  const texts: [text: string, found: string[], not: string[]][] = [
    ["Große Straße in Köln", ["strasse", "STRASSE", "straße", "koln", "grosse str", "KÖLN"], ["ln", "rasse", "g"]],
    ["Ελλάδα ο Οδυσσέας", ["ΕΛΛΑΔΑ", "οδυσσεασ", "ΟΔΥΣΣΈΑΣ", "ελλ"], ["λαδα"]],
    ["Привет, Мир", ["МИР", "прив", "мир привет"], ["ивет"]],
    ["東京タワーへようこそ", ["東京", "京タ", "タワー", "塔".replace("塔", "東"), "ようこそ"], ["京東", "犬"]],
    ["ภาษาไทยง่ายมาก", ["ไทย", "ภาษาไทย"], ["ไทยไทย"]],
    ["مُحَمَّد كتب", ["محمد", "كتب", "مُحَمَّد"], ["حمد"]],
    // Scripts with and without spaces next to each other.
    ["第3章 新しいiPhoneを買う", ["第3章", "iphone", "ipho", "3章", "買う"], ["phone"]],
    ["大阪2024大会", ["大阪2024大会", "2024", "202", "大会"], ["024"]],
    ["ราคา500บาท ดูYouTubeได้ที่นี่", ["500", "youtube", "ราคา500บาท", "ที่นี่"], ["tube"]],
    ["ភាពយន្ត4K", ["4k", "ភាពយន្ត"], ["k"]],
    ["안녕하세요 여러분", ["안녕", "여러분"], ["하세요"]],
    ["नमस्ते दुनिया", ["नमस्ते", "दुनि"], ["निया"]],
    ["ﬁnal Ｆｕｌｌ naïve café’s don't", ["final", "full", "naive", "cafe", "dont".slice(0, 3)], ["inal"]],
  ];
  const made_ = new Map<string, number>();
  for (const [text] of texts) {
    const id = await made("Untitled");
    made_.set(text, id);
    await subtitled(app, key, id, {}, vtt("—", text));
  }
  for (const [text, found, not] of texts) {
    for (const q of found) expect.soft(await ids(q), q).toEqual([made_.get(text)]);
    for (const q of not) expect.soft(await ids(q), q).not.toContain(made_.get(text));
  }
});

test("better matches come first: titles, then words often said, then the newest", async () => {
  const often = await made("One");
  await subtitled(app, key, often, {}, vtt("volcano volcano", "the volcano", "a volcano"));
  const title = await made("Volcano");
  const once = await made("Three");
  await subtitled(app, key, once, {}, vtt("a volcano", ...Array.from({ length: 50 }, (_, n) => `other words ${n}`)));
  expect(await ids("volcano")).toEqual([title, often, once]);
  expect(await ids("volcano", { limit: 1 })).toEqual([title]);
});

test("what is changed, replaced and deleted is found as it is", async () => {
  const before = await sections();
  const id = await made("alpha");
  const { id: subtitle } = await subtitled(app, key, id, {}, vtt("bravo"));
  const track = await app
    .as(key)
    .setTrack(id, { kind: "chapter", cues: [{ start_ms: 0, payload: { title: "charlie" } }] });
  const found = async () => (await Promise.all(["alpha", "bravo", "charlie", "delta"].map((q) => ids(q)))).map(String);
  const at = String(id);
  expect(await found()).toEqual([at, at, at, ""]);
  await app.as(key).updateAsset(id, { video_asset: { title: "delta" } });
  expect(await found()).toEqual(["", at, at, at]);
  await app.as(key).updateSubtitle(id, subtitle, { content: vtt("alpha") });
  expect(await found()).toEqual([at, "", at, at]);
  await app.as(key).deleteTrack(id, track.body.id);
  expect(await found()).toEqual([at, "", "", at]);
  await app.as(key).deleteSubtitle(id, subtitle);
  expect(await found()).toEqual(["", "", "", at]);
  await app.as(key).deleteAsset(id);
  expect(await found()).toEqual(["", "", "", ""]);
  expect(await sections()).toBe(before);
});

test("a language restricts captions", async () => {
  const id = await made("Film");
  await subtitled(app, key, id, { language: "pt-BR" }, vtt("obrigado por vir"));
  await subtitled(app, key, id, { language: "en" }, vtt("thank you"));
  expect(await ids("obrigado", { language: "pt" })).toEqual([id]);
  expect(await ids("obrigado", { language: "pt-br" })).toEqual([id]);
  expect(await ids("obrigado", { language: "en" })).toEqual([]);
  expect(await ids("film", { language: "en" })).toEqual([id]);
  const { status, error } = await app.as(key).searchAssets({ q: "a", language: "!" });
  expect([status, error.code]).toEqual([422, "invalid_language"]);
});

test("another tenant's texts are not found, and only the operator names a tenant", async () => {
  await subtitled(app, key, await made("Secret plans"), {}, vtt("secret words"));
  const other = await app.key((await app.tenant()).id);
  const mine = await made("Secret garden", {}, other);
  expect((await search("secret", {}, other)).map(({ asset_id }) => asset_id)).toEqual([mine]);
  expect((await app.as(other).searchAssets({ q: "secret", tenant_id: tenant.id })).status).toBe(404);
  const admin = (query: Query) => app.as({ admin: app.admin }).searchAssets({ q: "secret", ...query });
  expect((await admin({ tenant_id: tenant.id })).body).toHaveLength(1);
  expect((await admin({})).error.code).toBe("parameter_missing");
});

test("no query is an error of the server", async () => {
  await made('AND OR NOT NEAR "quoted" (text)');
  const queries = ['"', "'", "a* OR b", 'terms: "x"', "NEAR(a b)", "-", "^", "(((", "%", "1".repeat(500)];
  for (const q of queries) expect.soft(Array.isArray(await search(q)), q).toBe(true);
  expect(await ids("and OR quoted")).toHaveLength(1);
  for (const query of ["q=", "q=%20", "", `q=${"x".repeat(501)}`, "q=%00", "q=a&limit=0", "q=a&limit=501"]) {
    const { status } = await app.call("GET", `/api/v1/search?${query}`, { key });
    expect.soft([200, 422], query).toContain(status);
  }
  // Many words, none of which is at the beginning of a word.
  expect(await ids(Array.from({ length: 200 }, (_, n) => n % 7).join(" "))).toEqual([]);
});

test("texts from before the index are found once the scheduled task has indexed them", async () => {
  const id = await made("Older");
  await subtitled(
    app,
    key,
    id,
    {},
    vtt(...Array.from({ length: 3000 }, (_, n) => `line ${n} of a long film, word${n}`)),
  );
  await app.opened.app.write(async (tx) => {
    await tx.run(sql`delete from search_sections where tenant_id = ${tenant.id}`);
    await tx.run(sql`update search_queue set is_old = 1 where tenant_id = ${tenant.id}`);
    await tx.run(sql`insert into search_queue (tenant_id, asset_id, subtitle_id, is_old)
      select tenant_id, id, 0, 1 from assets where tenant_id = ${tenant.id} union all
      select tenant_id, asset_id, id, 1 from subtitles where tenant_id = ${tenant.id} on conflict do nothing`);
  });
  expect(await ids("older")).toEqual([]);
  await app.runTask("index-texts");
  expect(await ids("older")).toEqual([id]);
  const [last] = await search("word2999");
  expect(last?.matches).toEqual([
    { kind: "caption", text: "line 2999 of a long film, word2999", start_ms: 29_990_000 },
  ]);
  expect(await app.opened.app.db.all(sql`select 1 from search_queue`)).toEqual([]);
});

test("a large caption file is indexed by the scheduled task, in short transactions", async () => {
  const id = await made("Long");
  const text = vtt(...Array.from({ length: 7000 }, (_, n) => `a line of captions number${n} b${n * 7}`));
  const raw = subtitleForm({}, text);
  expect((await app.as(key).createSubtitle(id, raw)).status).toBe(201);
  expect(await ids("number6999")).toEqual([]);
  await app.runTask("index-texts");
  expect(await ids("number6999")).toEqual([id]);
  await app.as(key).deleteAsset(id);
  expect(await ids("number6999")).toEqual([]);
});
