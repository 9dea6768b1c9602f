import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import Sqlite from "libsql";
import { beforeAll, describe, expect, test } from "vitest";
import { rows, sample } from "#test/support/amount.ts";
import { json, refused } from "#test/support/commands/outcome.ts";
import { readyAsset } from "#test/support/flow.ts";
import { emptyFolder, newFolder, removeFolder } from "#test/support/folder.ts";
import { run, startServer, tenantKey, vodbox } from "#test/support/process.ts";

const serve = (dataDir: string, ...more: string[]) => [
  ...["serve", "--workers", "0", "--port", "0", "--data", dataDir],
  ...more,
];
const FLAG = "--allow-empty-database";
const own = { VODBOX_ADMIN_TOKEN: "", VODBOX_WORKER_TOKEN: "" };

/** A directory that was in use: a tenant, a playable asset, objects and secrets. Stopped. */
let used = "";
beforeAll(async () => {
  used = newFolder();
  const server = await startServer(used);
  const token = await tenantKey(server, ["assets:read", "assets:write"]);
  await readyAsset(server, token);
  server.child.kill("SIGTERM");
  await server.ended;
  return () => removeFolder(used);
});

/** A copy of it, with the database that `database` creates at the path. */
function without(database: (path: string) => void, parts = ["objects", "secrets"]): string {
  const dataDir = emptyFolder();
  for (const part of parts) cpSync(join(used, part), join(dataDir, part), { recursive: true });
  database(join(dataDir, "vodbox.db"));
  return dataDir;
}

const tableless = (path: string) => {
  const database = new Sqlite(path);
  database.exec("PRAGMA journal_mode = WAL; CREATE TABLE t (id); DROP TABLE t; PRAGMA wal_checkpoint(TRUNCATE)");
  database.close();
};
const MISSING: Record<string, (path: string) => void> = {
  missing: () => {},
  "of no bytes": (path) => writeFileSync(path, ""),
  "without tables": tableless,
};

const filesIn = (folder: string) =>
  readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name));

describe.each(sample(Object.entries(MISSING), 1))("a database that is %s next to objects and secrets", (_, make) => {
  test.each([
    ["both", ["objects", "secrets"]],
    ["objects alone", ["objects"]],
    ["secrets alone", ["secrets"]],
  ])("is refused by serve in one sentence, with %s", async (_, parts) => {
    const dataDir = without(make, parts);
    const before = filesIn(join(dataDir));
    const sentence = await refused(serve(dataDir), 1);
    expect(sentence).toContain(
      `${parts.join(" and ")}, but the database ${join(dataDir, "vodbox.db")} is missing or empty`,
    );
    expect(sentence).toMatch(/restore a backup.*--allow-empty-database/);
    // Nothing was created that a second start would take for a database.
    expect(filesIn(dataDir).filter((path) => !/server\.(lock|pid)|-shm$|-wal$/.test(path))).toEqual(
      before.filter((path) => !/-shm$|-wal$/.test(path)),
    );
    expect(await refused(serve(dataDir, "--processes", "2"), 1)).toContain("is missing or empty");
  });

  test("is not created by admin commands, and is doctor's first finding", async () => {
    const dataDir = without(make);
    for (const args of [
      ["tenant", "list"],
      ["tenant", "create", "--name", "A", "--slug", "a"],
      ["job", "list"],
    ])
      expect(await refused(["admin", ...args, "--data", dataDir], 1)).toContain("is missing or empty");
    for (const more of [[], ["--fix"]]) {
      const looked = await run(["admin", "doctor", "--json", "--data", dataDir, ...more]);
      const { ok, findings } = JSON.parse(looked.stdout);
      expect([looked.code, ok]).toEqual([1, false]);
      expect(findings[0]).toMatchObject({ check: "database", ok: false });
      expect(findings[0].detail).toMatch(/contains objects and secrets, but the database .* is missing or empty/);
    }
    const shown = await json(["admin", "token", "show", "--data", dataDir]);
    expect(shown.live).toBe(readFileSync(join(used, "secrets/live_token"), "utf8").trim());
    expect(filesIn(join(dataDir, "objects"))).toHaveLength(filesIn(join(used, "objects")).length);
  });

  test(`is accepted with ${FLAG}, permanently, and is doctor's first finding`, async () => {
    const dataDir = without(make);
    const server = await startServer(dataDir, { args: [FLAG], env: own });
    const held = filesIn(join(dataDir, "objects")).length;
    const doctor = async (...more: string[]) => {
      const { stdout } = await run(["admin", "doctor", "--json", "--data", dataDir, ...more], { env: own });
      return JSON.parse(stdout).findings;
    };
    expect((await doctor())[0]).toMatchObject({
      check: "lost database",
      ok: false,
      detail: expect.stringMatching(/has no tenant, but .* contains objects.*restore a backup/),
    });
    expect((await doctor("--fix"))[0]).toMatchObject({ check: "lost database", ok: false });
    expect(filesIn(join(dataDir, "objects")).length).toBeGreaterThanOrEqual(held);
    server.child.kill("SIGTERM");
    await server.ended;
    const again = await startServer(dataDir, { env: own });
    expect((await again.as().getReadiness()).status).toBe(200);
  });
});

test("a directory in the place of the database is refused in one sentence, and is doctor's first finding", async () => {
  const dataDir = without((path) => mkdirSync(path), []);
  const sentence = `${join(dataDir, "vodbox.db")} is not a file: move it away`;
  for (const args of [serve(dataDir), serve(dataDir, FLAG), ["admin", "tenant", "list", "--data", dataDir]])
    expect(await refused(args, 1)).toContain(sentence);
  const looked = await run(["admin", "doctor", "--json", "--data", dataDir]);
  expect(JSON.parse(looked.stdout).findings[0]).toMatchObject({ check: "database", ok: false });
  expect(JSON.parse(looked.stdout).findings[0].detail).toContain(sentence);
});

test("tables without rows next to objects are refused, too", async () => {
  const dataDir = emptyFolder();
  const server = await startServer(dataDir);
  server.child.kill("SIGTERM");
  await server.ended;
  cpSync(join(used, "objects"), join(dataDir, "objects"), { recursive: true });
  expect(await refused(serve(dataDir), 1)).toContain("contains no tenant");
  const looked = await run(["admin", "doctor", "--json", "--data", dataDir]);
  expect(JSON.parse(looked.stdout).findings[0].detail).toContain("contains no tenant");
  const allowed = await startServer(dataDir, { args: [FLAG] });
  expect((await allowed.as().getReadiness()).status).toBe(200);
});

test("with objects on S3, secrets are enough to detect a missing database", async () => {
  const dataDir = without(() => {}, ["secrets"]);
  const env = {
    VODBOX_STORAGE: "s3",
    VODBOX_S3_ENDPOINT: "http://127.0.0.1:9",
    VODBOX_S3_BUCKET: "b",
    VODBOX_S3_ACCESS_KEY_ID: "a",
    VODBOX_S3_SECRET_ACCESS_KEY: "s",
  };
  expect(await refused(serve(dataDir), 1, { env })).toContain("contains secrets, but the database");
  expect(existsSync(join(dataDir, "vodbox.db"))).toBe(false);
});

describe("these start as before", () => {
  test.each(rows(["vodbox.db", "secrets", "server.lock", "vodbox.db-wal", "secrets/admin_token", "local-proof"], 1))(
    "a directory whose first start was killed when %s appeared",
    async (name) => {
      const dataDir = emptyFolder();
      const started = vodbox(serve(dataDir), { env: own });
      while (!existsSync(join(dataDir, name))) await new Promise((resolve) => setTimeout(resolve, 1));
      started.child.kill("SIGKILL");
      await started.ended;
      const server = await startServer(dataDir, { env: own });
      expect((await server.as().getReadiness()).status).toBe(200);
      // And again, with secrets and no tenant.
      server.child.kill("SIGTERM");
      await server.ended;
      await startServer(dataDir, { env: own });
    },
  );

  test("a directory whose first command asked for the tokens, which creates nothing", async () => {
    const dataDir = emptyFolder();
    await refused(["admin", "token", "show", "--data", dataDir], 1);
    const server = await startServer(dataDir, { env: own });
    const { admin } = await json(["admin", "token", "show", "--data", dataDir]);
    expect((await server.as({ admin }).listTenants()).status).toBe(200);
  });

  test("a directory that a restore has filled", async () => {
    const archive = join(emptyFolder(), "backup.tar.zst");
    expect((await run(["admin", "backup", archive, "--objects", "--data", used])).code).toBe(0);
    const dataDir = join(emptyFolder(), "restored");
    expect((await run(["admin", "restore", archive, "--data", dataDir])).code).toBe(0);
    const server = await startServer(dataDir);
    expect((await server.as({ admin: server.admin }).listTenants()).body).toMatchObject([{ slug: "t" }]);
  });
});
