import { sql } from "drizzle-orm";
import { beforeEach, expect, test } from "vitest";
import { type TestApp, testApp } from "#test/support/app.ts";
import { expectError } from "#test/support/error.ts";
import { fc } from "#test/support/property.ts";

let app: TestApp;
let tenantId: number;
let key: string;
beforeEach(async () => {
  app = await testApp();
  tenantId = (await app.tenant()).id;
  key = await app.key(tenantId);
});

type Row = { title: string; seconds: number; bytes: number; status: string; policy: string; created: number };

/** Written directly: durations and sizes come from encodes. Returns the ids, oldest first. */
async function insert(rows: Row[], of = tenantId): Promise<number[]> {
  const ids: number[] = [];
  for (const { title, seconds, bytes, status, policy, created } of rows) {
    const [row] = await app.opened.app.write((tx) =>
      tx.all<{
        id: number;
      }>(`INSERT INTO assets (tenant_id, external_id, title, input_status, playback_status, playback_policy,
        source_key, duration_seconds, storage_bytes, created_at, updated_at) VALUES (${of}, 'vid_' || hex(randomblob(11)),
        '${title.replaceAll("'", "''")}', 'uploaded', '${status}', '${policy}', '', ${seconds}, ${bytes}, ${created}, 1) RETURNING id`),
    );
    ids.push((row as { id: number }).id);
  }
  return ids;
}

const row = (fields: Partial<Row> = {}): Row => ({
  title: "A",
  seconds: 1,
  bytes: 1,
  status: "ready",
  policy: "signed",
  created: 1,
  ...fields,
});
const list = async (query: string, as: { key?: string; admin?: string } = { key }) => {
  const answer = await app.call("GET", `/api/v1/assets?${query}`, as);
  expect(answer.status, answer.text).toBe(200);
  return answer.body.map(({ id }: { id: number }) => id) as number[];
};
const pages = async (query: string, as: { key?: string; admin?: string } = { key }) => {
  const answer = await app.call("GET", `/api/v1/assets/pages?${query}`, as);
  expect(answer.status, answer.text).toBe(200);
  return answer.body as { count: number; cursors: string[] };
};

/** Every page, by the Link headers. */
async function walk(query: string): Promise<number[]> {
  const found: number[] = [];
  for (let path: string | undefined = `/api/v1/assets?${query}`; path; ) {
    const { body, headers, status } = await app.call("GET", path, { key });
    expect(status).toBe(200);
    found.push(...body.map(({ id }: { id: number }) => id));
    const next: string | undefined = /<([^>]+)>; rel="next"/.exec(headers.get("link") ?? "")?.[1];
    path = next && `${new URL(next).pathname}${new URL(next).search}`;
  }
  return found;
}

test("assets are listed in each order, and in pages as by one request", async () => {
  const [a = 0, b = 0, c = 0, d = 0] = await insert([
    row({ title: "beta", seconds: 3.5, bytes: 10 }),
    row({ title: "Alpha", seconds: 0.25, bytes: 10 }),
    row({ title: "alpha", seconds: 3.5, bytes: 30 }),
    row({ title: "日本", seconds: 0, bytes: 0 }),
  ]);
  await insert([row({ title: "theirs" })], (await app.tenant()).id);
  const orders = {
    newest: [d, c, b, a],
    oldest: [a, b, c, d],
    title: [b, c, a, d],
    duration: [c, a, b, d],
    size: [c, b, a, d],
  };
  expect(await list("")).toEqual(orders.newest);
  for (const [sort, ids] of Object.entries(orders)) {
    expect(await list(`sort=${sort}`), sort).toEqual(ids);
    expect(await walk(`sort=${sort}&limit=1`), sort).toEqual(ids);
    const { count, cursors } = await pages(`sort=${sort}&limit=2`);
    expect([count, cursors.length]).toEqual([4, 1]);
    expect(await list(`sort=${sort}&limit=2&cursor=${cursors[0]}`), sort).toEqual(ids.slice(2));
    expect(await list(`sort=${sort}&tenant_id=${tenantId}`, { admin: app.admin })).toEqual(ids);
  }
});

test("any assets in any order are paged without gaps and repetitions", async () => {
  const fields = fc.record({
    title: fc.oneof(
      fc.constantFrom("a", "A", "b", "ß", "'"),
      fc.string({ unit: "grapheme", minLength: 1, maxLength: 500 }),
    ),
    seconds: fc.oneof(fc.constant(0), fc.double({ min: 0, max: 1e6, noNaN: true })),
    bytes: fc.constantFrom(0, 1, 2 ** 40),
    status: fc.constantFrom("ready", "draft"),
    policy: fc.constantFrom("public", "signed"),
    created: fc.constantFrom(1000, 2000),
  });
  await fc.assert(
    fc.asyncProperty(
      fc.array(fields, { maxLength: 12 }),
      fc.constantFrom("newest", "oldest", "title", "duration", "size"),
      fc.constantFrom("", "playback_status=ready", "playback_policy=public", "created_to=1970-01-01T00:00:01Z"),
      fc.integer({ min: 1, max: 5 }),
      async (rows, sort, filter, limit) => {
        tenantId = (await app.tenant()).id;
        key = await app.key(tenantId);
        await insert(rows.filter(({ title }) => !title.includes("\0") && title.isWellFormed()));
        const all = await list(`sort=${sort}&${filter}`);
        expect(new Set(all).size).toBe(all.length);
        expect(await walk(`sort=${sort}&${filter}&limit=${limit}`)).toEqual(all);
        const { count, cursors } = await pages(`sort=${sort}&${filter}&limit=${limit}`);
        expect([count, cursors.length]).toEqual([all.length, Math.max(0, Math.ceil(all.length / limit) - 1)]);
        for (const [index, cursor] of cursors.entries())
          expect(await list(`sort=${sort}&${filter}&limit=${limit}&cursor=${encodeURIComponent(cursor)}`)).toEqual(
            all.slice((index + 1) * limit, (index + 2) * limit),
          );
      },
    ),
    { numRuns: 40 },
  );
});

test("filters by policy and creation time, alone and with others", async () => {
  const [a = 0, b = 0, c = 0] = await insert([
    row({ policy: "public", created: Date.UTC(2026, 0, 1) }),
    row({ policy: "public", created: Date.UTC(2026, 1, 1), status: "draft" }),
    row({ created: Date.UTC(2026, 2, 1) }),
  ]);
  for (const sort of ["oldest", "title", "duration"]) {
    expect(await list(`sort=${sort}&playback_policy=public`)).toEqual(sort === "duration" ? [b, a] : [a, b]);
    expect(await list(`sort=${sort}&playback_policy=public&playback_status=draft`)).toEqual([b]);
    expect((await list(`sort=${sort}&created_from=2026-02-01T00:00:00Z`)).sort()).toEqual([b, c]);
    expect(await list(`sort=${sort}&created_to=2026-01-31T00:00:00Z`)).toEqual([a]);
    expect(await list(`sort=${sort}&created_from=2026-01-15T01:00:00%2B01:00&created_to=2026-02-15T00:00:00Z`)).toEqual(
      [b],
    );
  }
});

test("pages count a search, of long and of short words", async () => {
  const ids = await insert(Array.from({ length: 7 }, (_, index) => row({ title: `Sunset ${index}` })));
  await insert([row({ title: "Moon" })]);
  for (const q of ["sunset", "su"]) {
    const { count, cursors } = await pages(`q=${q}&limit=3`);
    expect([count, cursors.length]).toEqual([7, 2]);
    expect(await list(`q=${q}&limit=3&cursor=${cursors[1]}`)).toEqual([ids[0]]);
    expect(await list(`q=${q}&sort=oldest`)).toEqual(ids);
  }
  expect(await pages("q=nothing")).toEqual({ count: 0, cursors: [] });
});

test("another tenant's assets are neither listed nor counted", async () => {
  await insert([row()]);
  const other = await app.key((await app.tenant()).id);
  for (const sort of ["newest", "title"]) {
    expect(await pages(`sort=${sort}`, { key: other })).toEqual({ count: 0, cursors: [] });
    expect(await pages(`sort=${sort}&tenant_id=${tenantId}`, { key: other })).toEqual({ count: 0, cursors: [] });
    expect(await list(`sort=${sort}&tenant_id=${tenantId}`, { key: other })).toEqual([]);
  }
  expect((await pages("", { admin: app.admin })).count).toBe(1);
});

test("refuses unknown orders, foreign cursors and sorted searches", async () => {
  await insert([row(), row()]);
  const byTitle = (await pages("sort=title&limit=1")).cursors[0];
  const byId = (await pages("limit=1")).cursors[0];
  const odd = (value: unknown) => Buffer.from(JSON.stringify(value)).toString("base64url");
  for (const query of [
    "sort=random",
    "sort=title&q=sun",
    `sort=title&cursor=${byId}`,
    `sort=size&cursor=${byTitle}`,
    `cursor=${byTitle}`,
    `sort=title&cursor=${odd(["a", "1"])}`,
    `sort=duration&cursor=${odd([null, 1])}`,
    `sort=title&cursor=${odd([["a"], 1, 2])}`,
    "playback_policy=open",
    "created_from=yesterday",
    "limit=0",
  ])
    expectError(await app.call("GET", `/api/v1/assets?${query}`, { key }), 422, "validation_failed");
  expectError(await app.as({ admin: app.admin }).listAssets({ sort: "title" }), 422, "validation_failed");
  expectError(await app.as(key).listAssetPages({ limit: 501 }), 422, "validation_failed");
});

test("each order reads only its index, from where the page begins", async () => {
  const plan = async (index: string, key: string, where: string) => {
    const rows = await app.opened.app.db.all<{ detail: string }>(
      sql.raw(`explain query plan select id from assets indexed by ${index} where tenant_id = 1 and ${where}
        and playback_status = 'ready' and input_status = 'uploaded' and playback_policy = 'public' and collection_id = 1
        and created_at > 1 order by ${key}, id limit 51`),
    );
    return rows.map((row) => row.detail).join("; ");
  };
  for (const [index, key, value] of [
    ["assets_by_title", "title collate nocase", "'a'"],
    ["assets_by_duration", "duration_seconds", "1.5"],
    ["assets_by_size", "storage_bytes", "1"],
  ] as const)
    expect(await plan(index, key, `${key} >= ${value} and (${key}, id) > (${value}, 7)`)).toMatch(
      new RegExp(`^SEARCH assets USING COVERING INDEX ${index} \\(tenant_id=\\? AND \\w+>\\?\\)$`),
    );
});
