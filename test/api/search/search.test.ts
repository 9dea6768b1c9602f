import { sql } from "drizzle-orm";
import { beforeEach, expect, test } from "vitest";
import { type TestApp, testApp } from "#test/support/app.ts";
import { fc } from "#test/support/property.ts";

let app: TestApp;
let tenant: { id: number };
let key: string;
beforeEach(async () => {
  app = await testApp({ rate_limit_uploads: "100000/60" });
  tenant = await app.tenant();
  key = await app.key(tenant.id);
});
const made = async (title: string, fields: Record<string, unknown> = {}, as = key) => {
  const body = { filename: "clip.mp4", bytes_expected: 1, title, ...fields };
  return (await app.as(as).initiateUpload(body)).body.asset_id as number;
};
const ids = async (query: string, options: Record<string, string> = { key }) => {
  const answer = await app.call("GET", `/api/v1/assets?${query}`, options);
  expect(answer.status, answer.text).toBe(200);
  return answer.body.map((each: { id: number }) => each.id) as number[];
};
const find = (q: string) => ids(`q=${encodeURIComponent(q)}`);

test("a search finds any part of title, description and file name, only in its tenant", async () => {
  const a = await made("Sunset over Sylt", { description: '100% AND "quoted" OR (it\'s)' });
  const b = await made("Ünïcode 日本語の動画", { filename: "DSC_0042-final.mov" });
  await made("Sunset of another", {}, await app.key((await app.tenant()).id));
  const table: [string, number[]][] = [
    ["sunset", [a]],
    ["SYLT", [a]],
    ["set ov", [a]],
    ["dsc_00", [b]],
    ["42-FINAL", [b]],
    ["日本語", [b]],
    ["本語の動", [b]],
    ["ünï", [b]],
    ['"quoted"', [a]],
    ["AND", [a]],
    ["* OR", []],
    ["(it's)", [a]],
    ["title : sunset", []],
    ["sunset sylt", []],
    ["tenant", []],
    [`\ue000${tenant.id}\ue001`, []],
    ["%", [a]],
    ["_0", [b]],
    ["s", [a, b]],
    ["日", [b]],
    ["  sun  ", [a]],
  ];
  for (const [q, found] of table) expect.soft((await find(q)).sort(), q).toEqual(found.sort());
  const admin = (query: string) => ids(query, { admin: app.admin });
  expect(await admin("q=sunset")).toHaveLength(2);
  expect(await admin(`q=sunset&tenant_id=${tenant.id}`)).toEqual([a]);
  expect(await ids("q=sunset&playback_status=ready")).toEqual([]);
  expect(await ids("q=sunset&input_status=pending")).toEqual([a]);
});

test("changes and deletions are visible immediately", async () => {
  const id = await made("before");
  await app.as(key).updateAsset(id, { video_asset: { title: "after" } });
  expect([await find("before"), await find("after")]).toEqual([[], [id]]);
  await app.as(key).deleteAsset(id);
  expect(await find("after")).toEqual([]);
});

test("any part of any title is found", async () => {
  const title = fc
    .string({ unit: "grapheme", minLength: 1, maxLength: 40 })
    .filter((text) => text.trim() !== "" && !text.includes("\0"));
  await fc.assert(
    fc.asyncProperty(title, fc.nat(), fc.nat(), async (text, from, length) => {
      const id = await made(text);
      const letters = [...text];
      const start = from % letters.length;
      const part = letters
        .slice(start, start + 1 + (length % letters.length))
        .join("")
        .trim();
      if (part !== "") expect(await find(part), JSON.stringify([text, part])).toContain(id);
    }),
    { numRuns: 200 },
  );
});

test("pages of a search, also of a single letter, can be walked to the end", async () => {
  await app.opened.app.write(async (tx) =>
    tx.run(sql`
      with recursive n (i) as (values (1) union all select i + 1 from n where i < 5000)
      insert into assets (tenant_id, external_id, title, input_status, playback_status, playback_policy, source_key,
        created_at, updated_at)
      select ${tenant.id}, 'vid_' || i, iif(i % 1000 = 7, 'xyz', 'plain'), 'pending', 'draft', 'signed', 'k', 1, 1 from n`),
  );
  for (const q of ["xyz", "x"]) {
    const seen: number[] = [];
    for (let at: string | undefined = `/api/v1/assets?q=${q}&limit=2`; at; ) {
      const answer = await app.call("GET", at, { key });
      seen.push(...answer.body.map((each: { id: number }) => each.id));
      at = /^<([^>]+)>/.exec(answer.headers.get("link") ?? "")?.[1];
    }
    expect(seen, q).toEqual([4007, 3007, 2007, 1007, 7]);
  }
});

test("every filter of the list uses an index", async () => {
  const plan = async (where: string) => {
    const rows = await app.opened.app.db.all<{ detail: string }>(
      sql.raw(`explain query plan select * from assets where tenant_id = 1 and ${where} order by id desc limit 51`),
    );
    return rows.map((row) => row.detail).join("; ");
  };
  expect(await plan("id < 9")).toMatch(/assets_by_tenant \(tenant_id=\? AND (id|rowid)<\?\)$/);
  expect(await plan("collection_id = 3 and id < 9")).toMatch(
    /assets_by_collection \(.*collection_id=\? AND (id|rowid)<\?\)$/,
  );
  expect(await plan("playback_status = 'ready'")).toMatch(
    /assets_by_playback \(tenant_id=\? AND playback_status=\?\)$/,
  );
  expect(await plan("input_status = 'failed'")).toMatch(/assets_by_input \(tenant_id=\? AND input_status=\?\)$/);
  expect(await plan("external_id = 'x'")).toMatch(/sqlite_autoindex_assets_1 \(tenant_id=\? AND external_id=\?\)/);
});
