import { sql } from "drizzle-orm";
import { expect, test } from "vitest";
import { type TestApp, testApp } from "#test/support/app.ts";

/** Segments of the text index: a search reads each of them. */
const segmentsOf = async ({ opened }: TestApp) =>
  (await opened.app.db.get<{ n: number }>(sql`select count(distinct segid) as n from assets_text_idx`)).n;

const ASSETS = 200;
/** Not a multiple of the 100 segments of one level that SQLite merges at once. */
const RENAMED = 150;

async function withAssets(app: TestApp) {
  const key = await app.key((await app.tenant()).id);
  const ids: number[] = [];
  for (let n = 0; n < ASSETS; n++) {
    const body = { filename: `${n}.mp4`, title: `Before ${n}`, bytes_expected: 1 };
    ids.push((await app.as(key).initiateUpload(body)).body.asset_id);
  }
  const search = async (q: string) => {
    const { body } = await app.as(key).listAssets({ q });
    return (body as { title: string }[]).map(({ title }) => title);
  };
  return { key, ids, search };
}

test("the scheduled task merges what single changes add to the text index", async () => {
  const app = await testApp({ rate_limit_uploads: "100000/60" });
  const { key, ids, search } = await withAssets(app);
  for (const [n, id] of ids.slice(0, RENAMED).entries()) {
    const body = { video_asset: { title: `Renamed ${n}` } };
    expect((await app.as(key).updateAsset(id, body)).status).toBe(200);
  }
  // Each change was a transaction, and so a segment.
  expect(await segmentsOf(app)).toBeGreaterThan(20);
  await app.runTask("merge-text-index");
  expect(await segmentsOf(app)).toBeLessThan(12);
  expect(await search(`Renamed ${RENAMED - 1}`)).toEqual([`Renamed ${RENAMED - 1}`]);
  expect(await search("Before")).toHaveLength(ASSETS - RENAMED);
});

test("an import merges what it adds to the text index", async () => {
  const app = await testApp({ rate_limit_uploads: "100000/60" });
  const { key, search } = await withAssets(app);
  await app.runTask("merge-text-index");
  // Twenty rounds in one file: each row changes an asset that an earlier one has changed.
  const rows = Array.from({ length: 20 * ASSETS }, (_, n) => `Round ${n},${n % ASSETS}.mp4`);
  const raw = ["title,original_filename", ...rows].join("\n");
  const { status } = await app.as({ key, headers: { "content-type": "text/csv" } }).importAssets(raw);
  expect(status).toBe(200);
  expect(await segmentsOf(app)).toBeLessThan(20);
  expect(await search(`Round ${rows.length - 1}`)).toEqual([`Round ${rows.length - 1}`]);
  expect(await search("Before")).toEqual([]);
});
