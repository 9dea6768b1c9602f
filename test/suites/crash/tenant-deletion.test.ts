import { existsSync, mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import Sqlite from "libsql";
import { expect, test } from "vitest";
import { amount } from "#test/support/amount.ts";
import { json } from "#test/support/commands/outcome.ts";
import { readyAsset } from "#test/support/flow.ts";
import { emptyFolder } from "#test/support/folder.ts";
import { insertAssets } from "#test/support/many-assets.ts";
import { type RunningServer, startServer } from "#test/support/process.ts";

const ASSETS = amount(2000, 20_000);
const KILLS = amount(2, 4, "KILLS");

/** The rows of a tenant in a stopped server's database. */
function rowsIn(dataDir: string, tenantId: number): number {
  const database = new Sqlite(join(dataDir, "vodbox.db"));
  const row = database.prepare("SELECT count(*) AS n FROM assets WHERE tenant_id = ?").get([tenantId]);
  database.close();
  return (row as { n: number }).n;
}
const entries = (folder: string) => (existsSync(folder) ? readdirSync(folder, { recursive: true }).length : 0);

test("a deletion that is killed again and again ends, leaves nothing, and takes nothing of another tenant", async () => {
  const dataDir = emptyFolder();
  let server = await startServer(dataDir);
  const { admin } = server;
  const create = async (slug: string) => {
    const { body } = await server.as({ admin }).createTenant({ name: slug, slug });
    const scopes = ["assets:read", "assets:write"];
    const key = await server.as({ admin }).createApiKey({ tenant_id: body.id, scopes });
    return { id: body.id as number, key: key.body.token as string };
  };
  const large = await create("large");
  const other = await create("other");
  await readyAsset(server, large.key);
  const { asset } = await readyAsset(server, other.key);
  await stop(server);
  await insertAssets(dataDir, large.id, ASSETS);
  const folder = join(dataDir, "objects", "tenants", String(large.id));
  for (let k = 0; k < 2000; k++) {
    mkdirSync(join(folder, "delivered", String(k % 50)), { recursive: true });
    writeFileSync(join(folder, "delivered", String(k % 50), `${k}.m4s`), "segment");
  }

  server = await startServer(dataDir);
  const answer = await server.as({ admin }).deleteTenant(large.id, { confirm: "large" });
  expect(answer.status).toBe(202);
  for (let round = 0; round < KILLS; round++) {
    // Assets are deleted in the order of their ids. On a busy machine many more are deleted before the kill.
    const reached = asset.id + 1 + (round * ASSETS) / (KILLS * 8);
    const status = async () => (await server.as({ admin }).getAsset(reached)).status;
    await expect.poll(status, { timeout: 60_000, interval: 5 }).toBe(404);
    server.child.kill("SIGKILL");
    await server.ended;
    const rows = rowsIn(dataDir, large.id);
    expect([round, rows > 0 && rows < ASSETS]).toEqual([round, true]);
    server = await startServer(dataDir);
  }
  await expect
    .poll(async () => (await server.as({ admin }).getTenant(large.id)).status, { timeout: 120_000 })
    .toBe(404);
  expect(entries(folder)).toBe(0);
  expect((await server.as(other.key).getAsset(asset.id)).body.playback_status).toBe("ready");
  const again = await server.as({ admin }).createTenant({ name: "L", slug: "large" });
  expect(again.status).toBe(201);
  const checked = await json(["admin", "doctor", "--data", dataDir], { env: { VODBOX_ADMIN_TOKEN: admin } });
  expect(checked.findings.filter((finding: { ok: boolean }) => !finding.ok)).toEqual([]);
});

async function stop(server: RunningServer): Promise<void> {
  server.child.kill("SIGTERM");
  await server.ended;
}
