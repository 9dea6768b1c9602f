import { execFileSync } from "node:child_process";
import { closeSync, openSync, readdirSync, readFileSync, rmSync, statSync, writeSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { testApp } from "#test/support/app.ts";
import { filledServer, operator, ownServer } from "#test/support/backups.ts";
import { readyAsset, uploaded } from "#test/support/flow.ts";
import { emptyFolder } from "#test/support/folder.ts";
import { smallDisk } from "#test/support/storage/small-disk.ts";
import { subtitled } from "#test/support/subtitles.ts";

const { cli, done, failed } = operator();

const filesOf = (folder: string) =>
  readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name));

test("a backup of a running server is restored completely: tokens, keys, rows and objects", {
  timeout: 600_000,
}, async () => {
  const { server, key, ready, dataDir } = await filledServer();
  const folder = emptyFolder();
  const file = join(folder, "a.tar");
  const made = JSON.parse(await done("backup", file, "--objects", "--json", "--data", dataDir));
  expect(made).toMatchObject({
    file,
    with_objects: true,
    objects: { missing: 0 },
    counts: { assets: 1, subtitles: 1 },
  });
  expect(statSync(file).mode & 0o777).toBe(0o600);
  expect(made.secrets.sort()).toEqual(["admin_token", "live_token", "metrics_token", "signing_secret", "worker_token"]);
  // Any tar program can extract it.
  const names = execFileSync("tar", ["tf", file]).toString().trim().split("\n");
  expect(names[0]).toBe("vodbox.db");
  expect(names).toContain(`objects/${ready.asset.source_key}`);
  expect(names.slice(-2)).toEqual(["manifest.json", "manifest.json.sha256"]);

  // An existing file is not overwritten; nor is a second command's.
  expect(await failed("backup", file, "--data", dataDir)).toContain("--force");
  await done("backup", file, "--force", "--objects", "--data", dataDir);
  const small = join(folder, "b.tar.zst");
  await done("backup", small, "--objects", "--without-secrets", "--data", dataDir);
  expect(statSync(small).size).toBeLessThan(statSync(file).size);
  expect(readdirSync(folder).sort()).toEqual(["a.tar", "b.tar.zst"]);

  for (const each of [file, small])
    expect(await done("restore", each, "--check", "--data", emptyFolder())).toMatch(/^No faults in /);
  // Without objects in the archive, the check looks them up in the storage of the settings.
  const bare = join(folder, "c.tar");
  await done("backup", bare, "--data", dataDir);
  expect(await done("restore", bare, "--check", "--data", dataDir)).toMatch(/^No faults in /);
  const elsewhere = await cli("restore", bare, "--check", "--data", emptyFolder());
  expect([elsewhere.code, elsewhere.stdout]).toEqual([
    1,
    expect.stringMatching(/FAULT .* objects are missing or changed in storage/),
  ]);

  // Not over existing data, and not next to a running server.
  expect(await failed("restore", file, "--data", dataDir)).toContain("is in use by another vodbox");
  server.child.kill("SIGTERM");
  await server.ended;
  expect(await failed("restore", file, "--data", dataDir)).toContain("is not empty");

  const fresh = emptyFolder();
  expect(await done("restore", file, "--data", fresh)).toContain(`to ${fresh}`);
  expect(readdirSync(fresh).sort()).toEqual(["objects", "secrets", "server.lock", "server.pid", "vodbox.db"]);
  expect(statSync(join(fresh, "secrets/admin_token")).mode & 0o777).toBe(0o600);
  for (const path of filesOf(join(dataDir, "objects")))
    expect(readFileSync(path.replace(dataDir, fresh)), path).toEqual(readFileSync(path));
  const again = await ownServer(fresh);
  const playback = await again.as(key).getPlayback(ready.asset.id);
  expect(playback.status).toBe(200);
  expect((await again.call("GET", playback.body.hls_url)).status).toBe(200);
  expect((await again.as({ admin: server.admin }).listTenants()).status).toBe(200);

  // Without a server; the other tokens are generated again.
  const second = emptyFolder();
  await done("restore", small, "--data", second);
  await done("backup", join(folder, "d.tar"), "--objects", "--data", second);
  expect(readFileSync(join(second, "secrets/admin_token"), "utf8").trim()).not.toBe(server.admin);
});

test("objects that a backup may still copy remain until it has ended, or been dead for five minutes", async () => {
  const app = await testApp();
  const key = await app.key((await app.tenant()).id);
  const { admin } = app;
  const held = (assetKey: string) => app.opened.app.objects?.head(assetKey);
  const first = await readyAsset(app, key);
  const second = await uploaded(app, key);
  const hold = await app.as({ admin }).createRemovalHold();
  expect(hold).toMatchObject({ status: 201, body: { expires_in: 300 } });
  const subtitle = await subtitled(app, key, first.asset.id);
  await app.as(key).deleteSubtitle(first.asset.id, subtitle.id);
  for (const { asset } of [first, second]) expect((await app.as(key).deleteAsset(asset.id)).status).toBe(204);
  app.advance(250_000);
  await app.runTask("sweep-objects");
  expect(await held(first.asset.source_key)).not.toBeNull();
  expect(await held(first.contract.outputs.manifest_path)).not.toBeNull();
  expect((await app.as({ admin }).renewRemovalHold(hold.body.id)).status).toBe(200);
  app.advance(250_000);
  await app.runTask("sweep-objects");
  expect(await held(second.asset.source_key)).not.toBeNull();
  // It was not renewed: the backup has died.
  app.advance(60_000);
  expect((await app.as({ admin }).renewRemovalHold(hold.body.id)).status).toBe(404);
  await app.runTask("sweep-objects");
  for (const gone of [first.asset.source_key, second.asset.source_key, first.contract.outputs.manifest_path])
    expect(await held(gone)).toBeNull();
  const other = await app.as({ admin }).createRemovalHold();
  expect((await app.as({ admin }).deleteRemovalHold(other.body.id)).status).toBe(204);
  const third = await uploaded(app, key);
  await app.as(key).deleteAsset(third.asset.id);
  expect(await held(third.asset.source_key)).toBeNull();
});

test("a full disk is reported, and nothing is left", async (context) => {
  const { server, dataDir } = await filledServer();
  const disk = smallDisk(context, 2);
  disk.fill();
  rmSync(join(disk.path, "filler"));
  // Enough space for the copy of the database, not for the archive.
  const most = statSync(join(dataDir, "vodbox.db")).size;
  const room = openSync(join(disk.path, "filler"), "w");
  writeSync(room, Buffer.alloc(Math.max(0, 2_097_152 - Math.floor(most * 1.6))));
  closeSync(room);
  expect(await failed("backup", join(disk.path, "a.tar"), "--objects", "--data", dataDir)).toMatch(/not enough space/);
  expect(readdirSync(disk.path)).toEqual(["filler"]);
  expect((await server.as().getReadiness()).status).toBe(200);
});
