import { beforeAll, expect, test } from "vitest";
import { type TestApp, testApp } from "#test/support/app.ts";
import type { CallOptions } from "#test/support/client.ts";
import { foreignResources, THEIRS } from "#test/support/foreign-resources.ts";

/** Lists whose pages are cached until the next commit. */
const LISTS = ["assets", "uploads", "transcoding_jobs", "webhooks", "tenants", "collections"];
const QUERIES = ["", "?limit=20", "?limit=1"];

let app: TestApp;
let theirs: { id: number; key: string };
let mine: { id: number; key: string };
beforeAll(async () => {
  app = await testApp();
  const owner = await app.tenant();
  const other = await app.tenant();
  await foreignResources(app, other.id);
  theirs = { id: other.id, key: await app.key(other.id) };
  mine = { id: owner.id, key: await app.key(owner.id) };
  return app.close;
});

type Row = { id: number; title?: string; playback_status?: string };
async function list(path: string, as: CallOptions): Promise<Row[]> {
  const { status, body, text } = await app.call("GET", `/api/v1/${path}`, as);
  expect(status, text).toBe(200);
  return body;
}

test.for(LISTS)("%s: a cached page is only for callers with the same access", async (name) => {
  for (const query of QUERIES) {
    const callers = [{ admin: app.admin }, { key: theirs.key }, { key: mine.key }];
    const separately = await Promise.all(callers.map((caller) => list(name + query, caller)));
    // In the other order, when all of them are cached.
    for (const [index, caller] of [...callers.entries()].reverse())
      expect(await list(name + query, caller)).toEqual(separately[index]);
    const [all = [], of = [], own = []] = separately;
    expect(of.length).toBeGreaterThan(0);
    expect(all.length).toBeGreaterThanOrEqual(of.length);
    expect(JSON.stringify(own)).not.toContain(THEIRS);
    const ids = new Set(of.map(({ id }) => id));
    expect(own.filter(({ id }) => ids.has(id))).toEqual([]);
    if (name !== "tenants") expect(own).toEqual([]);
  }
});

test.for(LISTS)("%s: the tenant_id of another tenant has no rows, cached or not", async (name) => {
  const filter = `${name}?tenant_id=${theirs.id}`;
  const open = await list(filter, { admin: app.admin });
  expect(open.length).toBeGreaterThan(0);
  for (let round = 0; round < 2; round++)
    if (name !== "tenants") expect(await list(filter, { key: mine.key })).toEqual([]);
});

test("a change is in the lists of the next request", async () => {
  const titles = async () => (await list("assets?limit=20", { key: theirs.key })).map(({ title }) => title);
  const [asset] = await list("assets?limit=20", { key: theirs.key });
  for (let round = 0; round < 5; round++) {
    const title = `Round ${round}`;
    expect(await titles()).not.toContain(title);
    const body = { video_asset: { title } };
    await app.as(theirs.key).updateAsset(asset?.id, body);
    expect(await titles()).toContain(title);
    const upload = { filename: `new-${round}.mp4`, bytes_expected: 1 };
    const { body: created } = await app.as(theirs.key).initiateUpload(upload);
    expect((await list("assets", { key: theirs.key }))[0]?.id).toBe(created.asset_id);
    expect((await list("uploads?limit=20", { key: theirs.key }))[0]?.id).toBe(created.id);
  }
});

test("filters, orders and cursors are different pages", async () => {
  const queries = [
    "sort=oldest",
    "sort=newest",
    "sort=title",
    "playback_status=ready",
    "playback_status=draft",
    "q=THEIRS",
  ];
  const twice = async () => Promise.all(queries.map((query) => list(`assets?${query}&limit=2`, { key: theirs.key })));
  const first = await twice();
  const second = await twice();
  expect(second).toEqual(first);
  expect(first[0]).not.toEqual(first[1]);
  const statuses = (rows: Row[] = []) => new Set(rows.map(({ playback_status }) => playback_status));
  expect([...statuses(first[3])].filter((status) => status !== "ready")).toEqual([]);
  expect([...statuses(first[4])].filter((status) => status !== "draft")).toEqual([]);
  const { headers, body } = await app.as(theirs.key).listAssets({ limit: 1 });
  const next = new URL(/<([^>]+)>; rel="next"/.exec(headers.get("link") ?? "")?.[1] as string);
  expect((await list(next.pathname.slice(8) + next.search, { key: theirs.key }))[0]?.id).toBeLessThan(body[0].id);
});
