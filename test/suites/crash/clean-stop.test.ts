import { copyFileSync, cpSync, existsSync, statSync } from "node:fs";
import { join } from "node:path";
import { expect, test, vi } from "vitest";
import { rows } from "#test/support/amount.ts";
import { uploaded } from "#test/support/flow.ts";
import { emptyFolder } from "#test/support/folder.ts";
import { freshly } from "#test/support/fresh.ts";
import { type RunningServer, run, startServer, stopCleanly } from "#test/support/process.ts";
import { typedClient } from "#test/support/typed-client.ts";

const env = { VODBOX_RATE_LIMIT_UPLOADS: "1000000/60" };
/** A copy of only these must be the whole data directory. */
const COPIED = ["secrets", "objects"];

async function tenantOf(server: RunningServer) {
  const { admin } = server;
  const call = freshly(server.base);
  const tenant = await typedClient(call)({ admin }).createTenant({ name: "T", slug: "t" });
  const scopes = ["assets:read", "assets:write"];
  const issued = await typedClient(call)({ admin }).createApiKey({ tenant_id: tenant.body.id, scopes });
  return { as: typedClient(call), call, key: issued.body.token };
}

/** A new data directory with only `vodbox.db` of the three files of the database. */
function copied(dataDir: string): string {
  const wal = join(dataDir, "vodbox.db-wal");
  expect(existsSync(wal) ? statSync(wal).size : 0).toBe(0);
  const folder = emptyFolder();
  copyFileSync(join(dataDir, "vodbox.db"), join(folder, "vodbox.db"));
  for (const name of COPIED)
    if (existsSync(join(dataDir, name))) cpSync(join(dataDir, name), join(folder, name), { recursive: true });
  return folder;
}

test.each(
  rows(
    [
      ["SIGTERM", []],
      ["SIGINT", ["--processes", "2"]],
      ["SIGTERM", ["--processes", "2"]],
      ["SIGINT", []],
    ] as const,
    2,
  ),
)("after %s vodbox.db alone is the whole database %j", async (signal, args) => {
  const server = await startServer(emptyFolder(), { env, args: [...args] });
  const { call, key } = await tenantOf(server);
  const { asset } = await uploaded({ call }, key);
  server.child.kill(signal);
  expect((await server.ended).code).toBe(0);

  const again = await startServer(copied(server.dataDir), { env });
  const found = await again.as(key).getAsset(asset.id);
  expect(found.body).toMatchObject({ id: asset.id, title: "clip" });
});

test.each(rows([[[]], [["--processes", "2"]]], 1))("and also after a stop under load %j", async (args) => {
  const server = await startServer(emptyFolder(), { env, args });
  const { as, key } = await tenantOf(server);
  const made = new Set<number>();
  let stopping = false;
  const writers = Array.from({ length: 8 }, async (_, writer) => {
    for (let count = 0; !stopping; count++) {
      const body = { filename: `${writer}-${count}.mp4`, bytes_expected: 10, description: "x".repeat(4000) };
      // Once it stops, connections are refused and cut.
      const answer = await as(key)
        .initiateUpload(body)
        .catch(() => null);
      if (answer?.status === 201) made.add(answer.body.asset_id);
      if (answer === null) return;
    }
  });
  await vi.waitUntil(() => made.size > 150, { timeout: 60_000 });
  await stopCleanly(server);
  stopping = true;
  await Promise.all(writers);

  const again = await startServer(copied(server.dataDir), { env });
  const ids = new Set<number>();
  for (let path: string | undefined = "/api/v1/assets?limit=500"; path !== undefined; ) {
    const page = await again.call("GET", path, { key });
    for (const { id } of page.body) ids.add(id);
    const next: string | undefined = /<([^>]+)>; rel="next"/.exec(page.headers.get("link") ?? "")?.[1];
    path = next && `${new URL(next).pathname}${new URL(next).search}`;
  }
  expect([...made].filter((id) => !ids.has(id))).toEqual([]);
});

test("a command that opened the data itself leaves a complete vodbox.db, too", async () => {
  const dataDir = emptyFolder();
  const created = await run(["admin", "tenant", "create", "--name", "T", "--slug", "t", "--data", dataDir]);
  expect(created).toMatchObject({ code: 0 });
  const listed = await run(["admin", "tenant", "list", "--json", "--data", copied(dataDir)]);
  expect(JSON.parse(listed.stdout)).toMatchObject([{ slug: "t" }]);
});
