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
  const { call, admin, base } = server;
  const folder = join(dataDir, "backups");
  const list = async () => (await call("GET", backups, { admin })).body;
  expect(await list()).toEqual({ last: null, backups: [] });
  // The folder of a backup that was killed.
  mkdirSync(folder, { mode: 0o700 });
  writeFileSync(join(folder, "vodbox-20260101T000000Z.tar.zst.partial.db"), "x");

  const begun = await call("POST", backups, { admin, body: { objects: true } });
  expect(begun).toMatchObject({ status: 202, body: { status: "running", error: null, finished_at: null } });
  expectError(await call("POST", backups, { admin, body: {} }), 409, "backup_running");
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
  const [entry] = (await call("GET", "/api/v1/admin/audit?limit=1", { admin })).body;
  expect(entry).toMatchObject({ method: "GET", route: `${backups}/:name`, target_id: name });
  for (const path of [backups, `${backups}/${name}`])
    expectError(await call("GET", path, { key }), 401, "unauthorized");
  for (const other of ["vodbox-20260101T000000Z.tar.zst", "..%2Fvodbox.db", "%2e%2e%2f%2e%2e%2fetc%2fpasswd"])
    expectError(await call("GET", `${backups}/${other}`, { admin }), 404, "not_found");

  expect((await call("DELETE", `${backups}/${name}`, { admin })).status).toBe(204);
  expectError(await call("DELETE", `${backups}/${name}`, { admin }), 404, "not_found");
  expect((await list()).backups).toEqual([]);

  // A failure says why.
  rmSync(folder, { recursive: true });
  writeFileSync(folder, "");
  await call("POST", backups, { admin, body: {} });
  await expect.poll(async () => (await list()).last.error).toMatch(/ENOTDIR|EEXIST/);
  const trail = (await call("GET", "/api/v1/admin/audit", { admin })).body;
  const own = trail.filter(({ route }: any) => route.startsWith(backups)).map(({ method }: any) => method);
  expect(own).toEqual(["POST", "DELETE", "GET", "POST"]);
});
