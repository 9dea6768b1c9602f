import { sql } from "drizzle-orm";
import { beforeAll, beforeEach, describe, expect, test } from "vitest";
import { type TestApp, testApp } from "#test/support/app.ts";
import { expectError } from "#test/support/error.ts";
import { uploaded } from "#test/support/flow.ts";
import { insertTracks } from "#test/support/tracks.ts";

let app: TestApp;
let key: string;
let at: string;
const cues = [{ start_ms: 0, payload: { title: "Start" } }];

beforeAll(async () => {
  app = await testApp();
  key = await app.key((await app.tenant()).id);
  return app.close;
});
beforeEach(async () => {
  at = `/api/v1/assets/${(await uploaded(app, key)).asset.id}/tracks`;
  await app.newEvents();
});
const write = (body: unknown, method = "POST", path = at) => app.call(method, path, { key, body });
const types = async () => (await app.newEvents()).map(({ type }) => type);

describe("a track", () => {
  test.each(["POST", "PUT"])("is created by %s, and replaced under its kind and name", async (method) => {
    const made = await write({ kind: "chapter", cues, position: 3, producer: "cutter", source: "ml" }, method);
    expect(made.status).toBe(201);
    expect(made.body).toMatchObject({
      kind: "chapter",
      name: "default",
      position: 3,
      status: "ready",
      cues,
      storage_key: null,
      source: "ml",
      producer: "cutter",
    });
    const [event, ...others] = await app.newEvents();
    expect(others).toEqual([]);
    expect(event).toMatchObject({
      type: "video.track.ready",
      data: { asset_id: String(made.body.asset_id), track_id: made.body.id, kind: "chapter", name: "default" },
    });
    const replaced = await write({ kind: "chapter", name: "default", storage_key: "out/chapters.json" }, method);
    expect([replaced.status, replaced.body.id]).toEqual([200, made.body.id]);
    expect(replaced.body).toMatchObject({ cues: null, storage_key: "out/chapters.json", position: 3, producer: null });
    expect(await types()).toEqual([]);
    expect((await app.call("GET", `${at}/${made.body.id}`, { key })).body).toEqual(replaced.body);
    expect((await write({ kind: "chapter", name: "other", cues })).status).toBe(201);
  });

  test("emits one event each time it becomes ready", async () => {
    const { body } = await write({ kind: "scene", status: "processing", cues });
    expect(await types()).toEqual([]);
    const patch = (change: unknown) => write(change, "PATCH", `${at}/${body.id}`);
    expect((await patch({ status: "ready" })).status).toBe(200);
    expect(await types()).toEqual(["video.track.ready"]);
    await patch({ status: "ready" });
    await patch({ position: 4 });
    await write({ kind: "scene", cues });
    expect(await types()).toEqual([]);
    await write({ kind: "scene", cues, status: "failed" });
    await write({ kind: "scene", cues, status: "ready" }, "PUT");
    expect(await types()).toEqual(["video.track.ready"]);
  });

  test("keeps its cues in the order of their start, and every key of a payload", async () => {
    const payload = JSON.parse('{"constructor":1,"__proto__":{"a":[null,{"b":"é"}]},"":true}');
    const given = [
      { start_ms: 5000, end_ms: 5000, payload: {} },
      { start_ms: 0, payload },
      { start_ms: 5000, payload: { second: true } },
    ];
    const { body } = await write({ kind: "marker", cues: given });
    const stored = await app.call("GET", `${at}/${body.id}`, { key });
    expect(stored.text).toContain(JSON.stringify([given[1], given[0], given[2]]));
  });

  test("is changed by PATCH and PUT alike, and deleted", async () => {
    const { body } = await write({ kind: "index", name: "a", cues });
    await write({ kind: "index", name: "b", cues });
    for (const method of ["PATCH", "PUT"]) {
      const changed = await write({ name: method, kind: "words", position: -1 }, method, `${at}/${body.id}`);
      expect([changed.status, changed.body]).toMatchObject([
        200,
        { id: body.id, name: method, kind: "words", position: -1, cues },
      ]);
    }
    const one = `${at}/${body.id}`;
    expectError(await write({ kind: "index", name: "b" }, "PATCH", one), 422, "validation_failed");
    expectError(await write({ cues: null }, "PATCH", one), 422, "cues_or_storage_key_required");
    expect((await write({ cues: null, storage_key: "k" }, "PATCH", one)).body).toMatchObject({ cues: null });
    expectError(await write({ storage_key: null }, "PATCH", one), 422, "cues_or_storage_key_required");
    expect((await app.call("DELETE", one, { key })).status).toBe(204);
    for (const method of ["GET", "DELETE"]) expectError(await app.call(method, one, { key }), 404, "not_found");
  });

  test("of another asset of the same tenant is not found below this one", async () => {
    const { body } = await write({ kind: "index", cues });
    const { asset } = await uploaded(app, key);
    expectError(await app.as(key).getTrack(asset.id, body.id), 404, "not_found");
  });

  test("is deleted with its asset", async () => {
    const { body } = await write({ kind: "index", cues });
    await app.as(key).deleteAsset(body.asset_id);
    expectError(await app.call("GET", at, { key }), 404, "not_found");
  });

  test("is created once with one Idempotency-Key", async () => {
    const twice = async () =>
      app.call("POST", at, { key, body: { kind: "scene", cues }, headers: { "idempotency-key": at } });
    const first = await twice();
    const second = await twice();
    expect([first.status, second.status, second.body]).toEqual([201, 201, first.body]);
    expect(second.headers.get("idempotent-replayed")).toBe("true");
    expect(await types()).toEqual(["video.track.ready"]);
  });
});

const cue = (n: number, text = "") => ({ start_ms: n, payload: { text } });
const of = (count: number) => Array.from({ length: count }, (_, n) => cue(n));
/** Cues with exactly this many bytes. */
const ofBytes = (bytes: number) => {
  const empty = JSON.stringify([cue(0)]).length;
  return [cue(0, "x".repeat(bytes - empty))];
};

test.each<[string, unknown, string]>([
  ["nothing to keep", {}, "cues_or_storage_key_required"],
  ["nothing but null", { cues: null, storage_key: null }, "cues_or_storage_key_required"],
  ["no kind", { kind: undefined, cues }, "parameter_missing"],
  ["no kind, and bad cues", { kind: undefined, cues: 1 }, "parameter_missing"],
  ["a kind that is none", { kind: "Chapter one", cues }, "validation_failed"],
  ["a blank name", { name: " ", cues }, "validation_failed"],
  ["a status that is none", { status: "done", cues }, "validation_failed"],
  ["half a position", { position: 0.5, cues }, "validation_failed"],
  ["a NUL in a key", { storage_key: "a\0b" }, "validation_failed"],
  ["cues that are no list", { cues: { start_ms: 0, payload: {} } }, "cues_malformed"],
  ["a cue that is no object", { cues: [[]] }, "cues_malformed"],
  ["a cue without payload", { cues: [{ start_ms: 0 }] }, "cues_malformed"],
  ["a payload that is a list", { cues: [{ start_ms: 0, payload: [] }] }, "cues_malformed"],
  ["a payload that is null", { cues: [{ start_ms: 0, payload: null }] }, "cues_malformed"],
  ["a cue without start", { cues: [{ payload: {} }] }, "cues_malformed"],
  ["a start before the video", { cues: [cue(-1)] }, "cues_malformed"],
  ["a start between milliseconds", { cues: [cue(0.5)] }, "cues_malformed"],
  ["a start as text", { cues: [{ start_ms: "1", payload: {} }] }, "cues_malformed"],
  ["an end before the start", { cues: [{ start_ms: 2, end_ms: 1, payload: {} }] }, "cues_malformed"],
  ["501 cues", { cues: of(501) }, "cues_too_large"],
  ["200,001 bytes", { cues: ofBytes(200_001) }, "cues_too_large"],
  ["a body over any bound", { cues: ofBytes(3_000_000) }, "cues_too_large"],
])("%s is refused, and nothing is changed", async (_, body, code) => {
  const { body: kept } = await write({ kind: "keep", cues });
  await app.newEvents();
  const whole = { kind: "scene", ...(body as object) };
  const refused = [await write(whole), await write(whole, "PUT")];
  if (code !== "parameter_missing" && code !== "cues_or_storage_key_required")
    refused.push(await write(body, "PATCH", `${at}/${kept.id}`));
  for (const answer of refused) {
    expectError(answer, 422, code);
    if (code === "cues_too_large") expect(answer.body.error).toContain("storage_key");
  }
  expect((await app.call("GET", at, { key })).body).toEqual([kept]);
  expect(await types()).toEqual([]);
});

test("500 cues of 200,000 bytes in total are stored", async () => {
  expect((await write({ kind: "scene", cues: of(500) })).status).toBe(201);
  const whole = await write({ kind: "index", cues: ofBytes(200_000) });
  expect([whole.status, JSON.stringify(whole.body.cues).length]).toEqual([201, 200_000]);
});

describe("the list", () => {
  test("is ordered by position, then name, page by page, also with concurrent inserts", async () => {
    for (const [position, name] of [
      [2, "0"],
      [1, "b"],
      [1, "a"],
      [0, "z"],
      [1, "a\u{1F600}"],
    ] as const)
      await write({ kind: "scene", name, position, cues });
    await write({ kind: "index", name: "a", position: 1, cues });
    const seen: string[] = [];
    let next: string | null = `${at}?limit=2`;
    while (next) {
      const page = await app.call("GET", next, { key });
      expect(page.body.length).toBeLessThanOrEqual(2);
      seen.push(...page.body.map(({ kind, position, name }: any) => `${position}${name}${kind}`));
      next = /<(.+)>; rel="next"/.exec(page.headers.get("link") ?? "")?.[1] ?? null;
      // The last returned track is deleted: the list continues after its position.
      const last = page.body.at(-1);
      await app.call("DELETE", `${at}/${last.id}`, { key });
    }
    expect(seen).toEqual(["0zscene", "1ascene", "1aindex", "1a\u{1F600}scene", "1bscene", "20scene"]);
    expectError(await app.call("GET", `${at}?cursor=bm90`, { key }), 422, "validation_failed");
    expectError(await app.call("GET", `${at}?cursor=WzFd`, { key }), 422, "validation_failed");
  });

  test("filters by kind and status", async () => {
    await write({ kind: "scene", cues });
    await write({ kind: "chapter", status: "pending", cues });
    const kinds = async (query: string) =>
      (await app.call("GET", `${at}?${query}`, { key })).body.map(({ kind }: any) => kind);
    expect(await kinds("kind=scene")).toEqual(["scene"]);
    expect(await kinds("status=pending")).toEqual(["chapter"]);
    expectError(await app.call("GET", `${at}?status=x`, { key }), 422, "validation_failed");
  });

  test("returns at most 4 MiB, and a cursor", async () => {
    const large = ofBytes(199_000);
    for (let n = 0; n < 45; n++) await write({ kind: "scene", name: `n${n}`, position: n, cues: large });
    const positions: number[] = [];
    let pages = 0;
    for (let next: string | undefined = at; next; pages++) {
      const { body, text, headers } = await app.call("GET", next, { key });
      expect(Buffer.byteLength(text)).toBeLessThanOrEqual(4 * 2 ** 20);
      positions.push(...body.map(({ position }: any) => position));
      next = /<(.+)>; rel="next"/.exec(headers.get("link") ?? "")?.[1];
    }
    expect(positions).toEqual(Array.from({ length: 45 }, (_, n) => n));
    expect(pages).toBe(3);
  });
});

test.each(["[", '{"a":'])("a payload nested too deeply (%s) is refused without a crash", async (open) => {
  const nested = (depth: number) => {
    const inner = `${open.repeat(depth)}1${(open === "[" ? "]" : "}").repeat(depth)}`;
    const raw = `{"kind":"scene","cues":[{"start_ms":0,"payload":{"a":${inner}}}]}`;
    return app.call("POST", at, { key, raw, headers: { "content-type": "application/json" } });
  };
  expectError(await nested(80_000), 422, "cues_malformed");
  expectError(await nested(64), 422, "cues_malformed");
  expect((await nested(63)).status).toBe(201);
});

describe("the tracks of an asset", () => {
  test("are at most 1,000", async () => {
    const { asset } = await uploaded(app, key);
    at = `/api/v1/assets/${asset.id}/tracks`;
    await insertTracks(app, asset.id, { count: 999, kind: "scene", cues: cues });
    const last = await write({ kind: "marker", cues });
    expect(last.status).toBe(201);
    expectError(await write({ kind: "chapter", cues }), 422, "track_limit_reached");
    expect((await write({ kind: "marker", cues: [] })).status).toBe(200);
    await app.call("DELETE", `${at}/${last.body.id}`, { key });
    expect((await write({ kind: "chapter", cues })).status).toBe(201);
  });

  test("are deleted with it, however many there are from before", async () => {
    const { asset } = await uploaded(app, key);
    await insertTracks(app, asset.id, { count: 500, kind: "chapter", cues: cues });
    expect((await app.as(key).deleteAsset(asset.id)).status).toBe(204);
    const rows = (table: string) =>
      app.opened.app.db.all(sql`select 1 from ${sql.raw(table)} where asset_id = ${asset.id}`);
    for (const table of ["tracks", "search_queue", "search_sections"]) expect(await rows(table)).toEqual([]);
  });
});
