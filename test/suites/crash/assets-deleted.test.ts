import { join } from "node:path";
import Sqlite from "libsql";
import { expect, test } from "vitest";
import { json } from "#test/support/commands/outcome.ts";
import { readyAsset } from "#test/support/flow.ts";
import { emptyFolder } from "#test/support/folder.ts";
import { insertAssets } from "#test/support/many-assets.ts";
import { nightly } from "#test/support/nightly.ts";
import { type RunningServer, startServer } from "#test/support/process.ts";

const ASSETS = 3000;

async function platform() {
  const dataDir = emptyFolder();
  const server = await startServer(dataDir);
  const { admin } = server;
  const tenant = await server.as({ admin }).createTenant({ name: "T", slug: "t" });
  const body = { tenant_id: tenant.body.id, scopes: ["assets:read", "assets:write"] };
  const key = (await server.as({ admin }).createApiKey(body)).body.token as string;
  const kept = (await readyAsset(server, key)).asset.id as number;
  server.child.kill("SIGTERM");
  await server.ended;
  await insertAssets(dataDir, tenant.body.id, ASSETS);
  return { dataDir, admin, key, kept };
}

/** Works in the database of a stopped server. */
function inDatabase<T>(dataDir: string, work: (database: Sqlite.Database) => T): T {
  const database = new Sqlite(join(dataDir, "vodbox.db"));
  try {
    return work(database);
  } finally {
    database.close();
  }
}
const countOf = (dataDir: string, sql: string) =>
  inDatabase(dataDir, (database) => (database.prepare(sql).get([]) as { n: number }).n);
const DELETED = "SELECT count(*) AS n FROM events WHERE type = 'video.asset.deleted'";
const ONCE =
  "SELECT count(DISTINCT json_extract(data, '$.asset_id')) AS n FROM events WHERE type = 'video.asset.deleted'";

const kill = async (server: RunningServer) => {
  server.child.kill("SIGKILL");
  await server.ended;
};

async function expectSound(server: RunningServer, { dataDir, admin, key, kept }: Awaited<ReturnType<typeof platform>>) {
  expect((await server.as(key).getAsset(kept)).body.playback_status).toBe("ready");
  const checked = await json(["admin", "doctor", "--data", dataDir], { env: { VODBOX_ADMIN_TOKEN: admin } });
  expect(checked.findings.filter((finding: { ok: boolean }) => !finding.ok)).toEqual([]);
  server.child.kill("SIGTERM");
  await server.ended;
  expect([countOf(dataDir, DELETED), countOf(dataDir, ONCE)]).toEqual([ASSETS, ASSETS]);
}

nightly("expired assets are all deleted, each with one event, although the server is killed", async () => {
  const all = await platform();
  const { dataDir, key } = all;
  const until = Date.now() + 1000;
  inDatabase(dataDir, (database) => database.exec(`UPDATE assets SET expires_at = ${until} WHERE id <> ${all.kept}`));
  const left = async (server: RunningServer) => (await server.as(key).listAssets({ limit: 500 })).body.length as number;
  let cut = 0;
  let server = await startServer(dataDir);
  for (let round = 0; round < 3; round++) {
    const ids = inOrder(dataDir, all.kept);
    const reached = ids[Math.floor(ids.length / 3)];
    const status = async () => (await server.as(key).getAsset(reached)).status;
    await expect.poll(status, { timeout: 60_000, interval: 5 }).toBe(404);
    await kill(server);
    const deleted = countOf(dataDir, DELETED);
    if (deleted > 0 && deleted < ASSETS) cut++;
    expect(countOf(dataDir, "SELECT count(*) AS n FROM assets")).toBe(ASSETS + 1 - deleted);
    server = await startServer(dataDir);
  }
  expect(cut).toBeGreaterThan(0);
  await expect.poll(() => left(server), { timeout: 60_000, interval: 100 }).toBe(1);
  await expectSound(server, all);
});

/** The ids of the assets that are left. A reader next to the server. */
const inOrder = (dataDir: string, kept: number) =>
  inDatabase(dataDir, (database) =>
    (database.prepare(`SELECT id FROM assets WHERE id <> ${kept} ORDER BY id`).all([]) as { id: number }[]).map(
      ({ id }) => id,
    ),
  );

test("a bulk deletion that was killed is completed by a repeated request", async () => {
  const all = await platform();
  const { dataDir, key } = all;
  const ids = inOrder(dataDir, all.kept);
  let server = await startServer(dataDir);
  const bulk = (some: number[], name: string) =>
    server.as({ key, headers: { "idempotency-key": name } }).changeAssets({ ids: some, action: "delete" });
  let cut = 0;
  for (let from = 0; from < ASSETS; from += 1000) {
    const some = ids.slice(from, from + 1000);
    const answer = bulk(some, `${from}`).catch((error) => {
      if (error instanceof TypeError) return null;
      throw error;
    });
    const status = async () => (await server.as(key).getAsset(some[300])).status;
    await expect.poll(status, { timeout: 60_000, interval: 1 }).toBe(404);
    await kill(server);
    const answered = await answer;
    if (answered === null) cut++;
    server = await startServer(dataDir);
    const again = await bulk(some, `${from}`);
    expect(again.status).toBe(200);
    if (answered?.status === 200) expect(again.body).toEqual(answered.body);
    const { applied, errors } = again.body;
    const missing = errors.map(({ id, code }: { id: number; code: string }) => [id, code]);
    expect(missing).toEqual(some.slice(0, 1000 - applied.length).map((id) => [id, "not_found"]));
    expect(applied).toEqual(some.slice(1000 - applied.length));
  }
  console.log(`${cut} of 3 bulk deletions were cut`);
  await expectSound(server, all);
});
