import { once } from "node:events";
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import Sqlite from "libsql";
import { expect, type TestContext, test } from "vitest";
import { migrate } from "#storage/db/migrate.ts";
import { json, refused } from "#test/support/commands/outcome.ts";
import { emptyFolder } from "#test/support/folder.ts";
import { startServer, stopCleanly } from "#test/support/process.ts";
import { smallDisk } from "#test/support/storage/small-disk.ts";

const MIGRATIONS = join(import.meta.dirname, "../../../storage/db/migrations");
const serve = (dataDir: string, ...more: string[]) => [
  "serve",
  "--workers",
  "0",
  "--port",
  "0",
  "--data",
  dataDir,
  ...more,
];

test("a port in use is named, with what to do", async () => {
  const holder = createServer().listen(0, "127.0.0.1");
  await once(holder, "listening");
  const { port } = holder.address() as { port: number };
  try {
    const sentence = await refused(["serve", "--data", emptyFolder(), "--port", String(port)], 1);
    expect(sentence).toMatch(new RegExp(`Port ${port} on 127\\.0\\.0\\.1 is in use.*--port`));
    expect(await refused(serve(emptyFolder(), "--host", "192.0.2.1"), 1)).toContain(
      "The address 192.0.2.1 does not exist on this machine",
    );
  } finally {
    holder.close();
  }
});

test("a data directory that cannot be written is named: under a file, under /proc", async () => {
  const folder = emptyFolder();
  writeFileSync(join(folder, "file"), "");
  const folders = [join(folder, "file"), join(folder, "file/data"), "/proc/vodbox/data", "/proc/self"];
  const create = ["admin", "tenant", "create", "--name", "T", "--slug", "t", "--data"];
  const asked = folders.flatMap((dataDir) => [
    { dataDir, args: serve(dataDir) },
    { dataDir, args: [...create, dataDir] },
  ]);
  await Promise.all(
    asked.map(async ({ dataDir, args }) =>
      expect(await refused(args, 1)).toContain(`The data directory ${dataDir} is not writable`),
    ),
  );
});

test("a data directory has one server; a second one reports the owner", async () => {
  const server = await startServer(emptyFolder());
  const sentence = await refused(serve(server.dataDir), 1);
  expect(sentence).toContain(`${server.dataDir} is in use by another vodbox (pid ${server.child.pid})`);
  expect((await server.as().getReadiness()).status).toBe(200);
});

test("a database that is newer than the program is refused, and nothing is changed", async () => {
  const dataDir = emptyFolder();
  await json(["admin", "tenant", "create", "--name", "N", "--slug", "n", "--data", dataDir], {
    env: { VODBOX_LOG_LEVEL: "error" },
  });
  const database = new Sqlite(join(dataDir, "vodbox.db"));
  database.exec("INSERT INTO _migrations (name, sha256, applied_at) VALUES ('9999_future.sql', 'x', 'x')");
  database.close();
  for (const args of [serve(dataDir), ["admin", "tenant", "list", "--data", dataDir]])
    expect(await refused(args, 1)).toMatch(/newer than this vodbox: it has the migration 9999_future\.sql/);
  expect(readdirSync(dataDir).filter((name) => name.includes(".before-"))).toEqual([]);
});

test("an upgrade copies the database before it migrates it, and the documented downgrade works", async () => {
  const dataDir = emptyFolder();
  const file = join(dataDir, "vodbox.db");
  const migrations = readdirSync(MIGRATIONS)
    .sort()
    .map((name) => ({ name, sql: readFileSync(join(MIGRATIONS, name), "utf8") }));
  const older = migrations.slice(0, -1);
  const newest = migrations.at(-1)?.name as string;
  await migrate({ url: `file:${file}`, migrations: older });
  const before = new Sqlite(file);
  before.exec("INSERT INTO tenants (id, name, slug, created_at, updated_at) VALUES (7, 'Kept', 'kept', 1, 1)");
  before.close();

  const server = await startServer(dataDir);
  const copy = `vodbox.db.before-${newest.replace(".sql", "")}`;
  expect(readdirSync(dataDir).filter((name) => name.includes(".before-"))).toEqual([copy]);
  const { admin } = server;
  const tenants = async () => (await server.as({ admin }).listTenants()).body;
  expect(await tenants()).toMatchObject([{ id: 7, name: "Kept" }]);
  await server.as({ admin }).createTenant({ name: "Later", slug: "later" });
  server.child.kill("SIGTERM");
  await server.ended;

  // The older program would find its own database, with the data from before the upgrade.
  for (const end of ["", "-wal", "-shm"]) rmSync(file + end, { force: true });
  renameSync(join(dataDir, copy), file);
  await migrate({ url: `file:${file}`, migrations: older });
  const after = new Sqlite(file);
  expect(after.prepare("SELECT name FROM tenants").all([])).toEqual([{ name: "Kept" }]);
  expect(after.prepare("SELECT count(*) AS n FROM _migrations").all([])).toEqual([{ n: older.length }]);
  expect(after.prepare("PRAGMA integrity_check").all([])).toEqual([{ integrity_check: "ok" }]);
  after.close();
});

const MEGABYTE = 2 ** 20;
const filesUnder = (folder: string): string[] =>
  existsSync(folder)
    ? readdirSync(folder, { recursive: true, withFileTypes: true })
        .filter((entry) => entry.isFile())
        .map((entry) => entry.name)
    : [];

async function serverOnSmallDisk(context: TestContext, minFreeBytes: number) {
  const disk = smallDisk(context, 26);
  const dataDir = join(disk.path, "data");
  mkdirSync(dataDir);
  const server = await startServer(dataDir, { env: { VODBOX_MIN_FREE_BYTES: String(minFreeBytes) } });
  const { admin } = server;
  const tenant = await server.as({ admin }).createTenant({ name: "T", slug: "t" });
  const initiate = (bytes: number) =>
    server.as({ admin }).initiateUpload({ tenant_id: tenant.body.id, filename: "a.mp4", bytes_expected: bytes });
  const put = (upload: { body: any }, bytes: number) =>
    server.call("PUT", upload.body.upload_url, {
      raw: new Uint8Array(bytes).fill(7),
      headers: upload.body.upload_headers,
    });
  const complete = (upload: { body: any }, bytes: number) =>
    server.as({ admin }).completeUpload(upload.body.id, { bytes_received: bytes });
  return { disk, dataDir, server, initiate, put, complete };
}

test("a disk that fills during an upload: 507, nothing stored, the server keeps running, and with space it works again", async (context) => {
  const { disk, dataDir, server, initiate, put, complete } = await serverOnSmallDisk(context, 0);
  const upload = await initiate(30 * MEGABYTE);
  const full = await put(upload, 30 * MEGABYTE);

  expect([full.status, full.body.code]).toEqual([507, "storage_full"]);
  expect(full.body.request_id).toBe(full.headers.get("x-request-id"));
  expect(filesUnder(join(dataDir, "objects"))).toEqual([]);
  expect(await complete(upload, 30 * MEGABYTE)).toMatchObject({ status: 422, body: { code: "bytes_mismatch" } });

  // Now without space for the database either.
  disk.fill();
  expect((await server.as().getHealth()).status).toBe(200);
  expect((await server.as({ admin: server.admin }).getUpload(upload.body.id)).status).toBe(200);
  const none = await Promise.all(Array.from({ length: 4 }, () => put(upload, MEGABYTE)));
  expect(none.map((answer) => [answer.status, answer.body.code])).toEqual(Array(4).fill([507, "storage_full"]));
  let refusal = await initiate(MEGABYTE);
  for (let tries = 0; refusal.status === 201 && tries < 200; tries++) refusal = await initiate(MEGABYTE);
  expect([refusal.status, refusal.error.code]).toEqual([507, "storage_full"]);
  expect((await server.as().getHealth()).status).toBe(200);

  rmSync(join(disk.path, "filler"));
  const later = await initiate(MEGABYTE);
  expect(later.status).toBe(201);
  expect((await put(later, MEGABYTE)).status).toBe(200);
  expect(await complete(later, MEGABYTE)).toMatchObject({ status: 200, body: { status: "completed" } });
  expect(filesUnder(join(dataDir, "objects"))).toHaveLength(1);
  await stopCleanly(server);
});

test("uploads stop before the disk is full, so that the database has space", async (context) => {
  const { disk, initiate, put } = await serverOnSmallDisk(context, 12 * MEGABYTE);
  const first = await initiate(9 * MEGABYTE);
  const second = await initiate(MEGABYTE);
  expect((await put(first, 9 * MEGABYTE)).status).toBe(200);
  writeFileSync(join(disk.path, "other"), Buffer.alloc(4 * MEGABYTE));
  expect(await put(second, MEGABYTE)).toMatchObject({ status: 507, body: { code: "storage_full" } });
  expect((await initiate(MEGABYTE)).status).toBe(201);
  rmSync(join(disk.path, "other"));
  expect((await put(second, MEGABYTE)).status).toBe(200);
});

test("a full disk at the start is reported in a sentence", async (context) => {
  const disk = smallDisk(context, 2);
  disk.fill();
  const sentence = await refused(serve(join(disk.path, "data")), 1);
  expect(sentence).toMatch(/full/i);
  expect(statSync(disk.path).isDirectory()).toBe(true);
});
