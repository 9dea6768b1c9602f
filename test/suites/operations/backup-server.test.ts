import { mkdirSync, readdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { filledServer, operator } from "#test/support/backups.ts";
import { expectError } from "#test/support/error.ts";
import { emptyFolder } from "#test/support/folder.ts";

const { done } = operator();
const backups = "/api/v1/admin/backups";

test("the server backs itself up; the archive is listed, downloaded, valid, and deleted", async () => {
  const { server, key, dataDir } = await filledServer();
  const { as, call, admin, base } = server;
  const folder = join(dataDir, "backups");
  const list = async () => (await as({ admin }).listBackups()).body;
  expect(await list()).toEqual({ last: null, backups: [] });
  // The folder of a backup that was killed.
  mkdirSync(folder, { mode: 0o700 });
  writeFileSync(join(folder, "vodbox-20260101T000000Z.tar.zst.partial.db"), "x");

  const begun = await as({ admin }).startBackup({ objects: true });
  expect(begun).toMatchObject({ status: 202, body: { status: "running", error: null, finished_at: null } });
  expectError(await as({ admin }).startBackup({}), 409, "backup_running");
  await expect.poll(async () => (await list()).last.status, { timeout: 60_000 }).toBe("done");
  const { name } = begun.body;
  const { last, backups: files } = await list();
  expect(last).toMatchObject({ name, finished_at: expect.any(String) });
  expect(files).toEqual([{ name, bytes: expect.any(Number), created_at: expect.any(String) }]);
  expect(readdirSync(folder)).toEqual([name]);
  expect(statSync(join(folder, name)).mode & 0o777).toBe(0o600);

  const response = await fetch(`${base}${backups}/${name}`, { headers: { "x-svc-admin-token": admin } });
  expect(response.headers.get("content-disposition")).toBe(`attachment; filename="${name}"`);
  const bytes = new Uint8Array(await response.arrayBuffer());
  expect(bytes.length).toBe(files[0].bytes);
  const copy = join(emptyFolder(), name);
  writeFileSync(copy, bytes);
  expect(await done("restore", copy, "--check", "--data", emptyFolder())).toMatch(/^No faults in /);

  // Its secrets are the operator's alone, and who took them is recorded.
  const [entry] = (await as({ admin }).listAuditEntries({ limit: 1 })).body;
  expect(entry).toMatchObject({ method: "GET", route: `${backups}/:name`, target_id: name });
  for (const path of [backups, `${backups}/${name}`])
    expectError(await call("GET", path, { key }), 401, "unauthorized");
  for (const other of ["vodbox-20260101T000000Z.tar.zst", "..%2Fvodbox.db", "%2e%2e%2f%2e%2e%2fetc%2fpasswd"])
    expectError(await call("GET", `${backups}/${other}`, { admin }), 404, "not_found");

  expect((await as({ admin }).deleteBackup(name)).status).toBe(204);
  expectError(await as({ admin }).deleteBackup(name), 404, "not_found");
  expect((await list()).backups).toEqual([]);

  // A failure says why.
  rmSync(folder, { recursive: true });
  writeFileSync(folder, "");
  await as({ admin }).startBackup({});
  await expect.poll(async () => (await list()).last.error).toMatch(/ENOTDIR|EEXIST/);
  const trail = (await as({ admin }).listAuditEntries()).body;
  const own = trail.filter(({ route }) => route.startsWith(backups)).map(({ method }) => method);
  expect(own).toEqual(["POST", "DELETE", "GET", "POST"]);
});
