import { execFileSync } from "node:child_process";
import {
  closeSync,
  existsSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
  writeSync,
} from "node:fs";
import { join } from "node:path";
import Sqlite from "libsql";
import { pack } from "tar-stream";
import { expect, test } from "vitest";
import { loadConfig } from "../../src/config/load.ts";
import { UserError } from "../../src/lib/errors.ts";
import { restoreBackup } from "../../src/resources/operator/backup/restore.ts";
import { smallDisk } from "../storage/small-disk.ts";
import { testApp } from "../support/app.ts";
import { readyAsset, uploaded } from "../support/flow.ts";
import { emptyFolder } from "../support/folder.ts";
import { run, startServer } from "../support/process.ts";
import { subtitled } from "../support/subtitles.ts";
import { refused } from "./outcome.ts";

// As an operator has them: kept in the data directory, so that they can be restored.
const env = { VODBOX_ADMIN_TOKEN: "", VODBOX_WORKER_TOKEN: "", VODBOX_LOG_LEVEL: "error" };

async function filledServer(dataDir = emptyFolder()) {
  const started = await startServer(dataDir, { env });
  const token = (name: string) => readFileSync(join(dataDir, "secrets", `${name}_token`), "utf8").trim();
  const server = { ...started, admin: token("admin"), worker: token("worker") };
  const { admin } = server;
  const tenant = await server.call("POST", "/api/v1/admin/tenants", { admin, body: { name: "T", slug: "t" } });
  const body = { tenant_id: tenant.body.id, scopes: ["assets:read", "assets:write", "playback:read"] };
  const key = (await server.call("POST", "/api/v1/api_keys", { admin, body })).body.token as string;
  const ready = await readyAsset(server, key, { bytes: "source of the first" });
  await subtitled(server, key, ready.asset.id);
  return { server, key, ready, dataDir };
}

const filesOf = (folder: string) =>
  readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name));
/** What progress goes to stderr with is no error. */
const cli = async (...args: string[]) => {
  const ended = await run(["admin", ...args], { env });
  return { ...ended, stderr: ended.stderr.replaceAll(/^(backup|check|restore): .*\n/gm, "") };
};
const done = async (...args: string[]) => {
  const ended = await cli(...args);
  expect(ended, `admin ${args.join(" ")}`).toMatchObject({ code: 0, stderr: "" });
  return ended.stdout;
};
const failed = async (...args: string[]) => {
  const ended = await cli(...args);
  expect(ended, `admin ${args.join(" ")}`).toMatchObject({ code: 1, stdout: "" });
  expect(ended.stderr).toMatch(/^vodbox: [^\n]*\.\n$/);
  return ended.stderr;
};

/** What the command would say. In this process, for there are many. */
const refusal = async (file: string, dataDir: string): Promise<string> => {
  const config = loadConfig({ flags: { data_dir: dataDir }, env: {} });
  const outcome = restoreBackup({ config, file, migrations: [], openObjects: async () => null, progress: () => {} });
  const error = await outcome.then(
    () => null,
    (thrown) => thrown,
  );
  expect(error).toBeInstanceOf(UserError);
  return error.message;
};

test("a backup of a running server is restored whole: tokens, keys, rows and objects", {
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
  expect(made.secrets.sort()).toEqual(["admin_token", "live_token", "signing_secret", "worker_token"]);
  // Any tar opens it.
  const names = execFileSync("tar", ["tf", file]).toString().trim().split("\n");
  expect(names[0]).toBe("vodbox.db");
  expect(names).toContain(`objects/${ready.asset.source_key}`);
  expect(names.slice(-2)).toEqual(["manifest.json", "manifest.json.sha256"]);

  // An existing file is no accident; nor is a second command's.
  expect(await failed("backup", file, "--data", dataDir)).toContain("--force");
  await done("backup", file, "--force", "--objects", "--data", dataDir);
  const small = join(folder, "b.tar.zst");
  await done("backup", small, "--objects", "--without-secrets", "--data", dataDir);
  expect(statSync(small).size).toBeLessThan(statSync(file).size);
  expect(readdirSync(folder).sort()).toEqual(["a.tar", "b.tar.zst"]);

  for (const each of [file, small])
    expect(await done("restore", each, "--check", "--data", emptyFolder())).toMatch(/^All is well/);
  // Without objects in it the check looks for them where the settings say.
  const bare = join(folder, "c.tar");
  await done("backup", bare, "--data", dataDir);
  expect(await done("restore", bare, "--check", "--data", dataDir)).toMatch(/^All is well/);
  const elsewhere = await cli("restore", bare, "--check", "--data", emptyFolder());
  expect([elsewhere.code, elsewhere.stdout]).toEqual([1, expect.stringMatching(/FAULT .* objects are not in storage/)]);

  // Not over what is there, and not beside a server.
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
  const again = { ...(await startServer(fresh, { env })), admin: server.admin };
  const playback = await again.call("GET", `/api/v1/playback/${ready.asset.id}`, { key });
  expect(playback.status).toBe(200);
  expect((await again.call("GET", playback.body.hls_url)).status).toBe(200);
  expect((await again.call("GET", "/api/v1/tenants", { admin: server.admin })).status).toBe(200);

  // Without a server; the other tokens are made anew.
  const second = emptyFolder();
  await done("restore", small, "--data", second);
  await done("backup", join(folder, "d.tar"), "--objects", "--data", second);
  expect(readFileSync(join(second, "secrets/admin_token"), "utf8").trim()).not.toBe(server.admin);
});

test("objects that a backup may still copy stay until it is over, or dead for five minutes", async () => {
  const app = await testApp();
  const key = await app.key((await app.tenant()).id);
  const { admin } = app;
  const held = (assetKey: string) => app.opened.app.objects?.head(assetKey);
  const first = await readyAsset(app, key);
  const second = await uploaded(app, key);
  const hold = await app.call("POST", "/api/v1/admin/removal_holds", { admin });
  expect(hold).toMatchObject({ status: 201, body: { expires_in: 300 } });
  const subtitle = await subtitled(app, key, first.asset.id);
  await app.call("DELETE", `/api/v1/assets/${first.asset.id}/subtitles/${subtitle.id}`, { key });
  for (const { asset } of [first, second])
    expect((await app.call("DELETE", `/api/v1/assets/${asset.id}`, { key })).status).toBe(204);
  app.turn(250_000);
  await app.duty("sweep-objects");
  expect(await held(first.asset.source_key)).not.toBeNull();
  expect(await held(first.contract.outputs.manifest_path)).not.toBeNull();
  const at = `/api/v1/admin/removal_holds/${hold.body.id}`;
  expect((await app.call("PUT", at, { admin })).status).toBe(200);
  app.turn(250_000);
  await app.duty("sweep-objects");
  expect(await held(second.asset.source_key)).not.toBeNull();
  // Nobody renewed it: the backup is dead.
  app.turn(60_000);
  expect((await app.call("PUT", at, { admin })).status).toBe(404);
  await app.duty("sweep-objects");
  for (const gone of [first.asset.source_key, second.asset.source_key, first.contract.outputs.manifest_path])
    expect(await held(gone)).toBeNull();
  const other = await app.call("POST", "/api/v1/admin/removal_holds", { admin });
  expect((await app.call("DELETE", `/api/v1/admin/removal_holds/${other.body.id}`, { admin })).status).toBe(204);
  const third = await uploaded(app, key);
  await app.call("DELETE", `/api/v1/assets/${third.asset.id}`, { key });
  expect(await held(third.asset.source_key)).toBeNull();
});

test("what is cut off, altered, newer or no backup is refused, and nothing is left", {
  timeout: 600_000,
}, async () => {
  const { server, dataDir } = await filledServer();
  server.child.kill("SIGTERM");
  await server.ended;
  const folder = emptyFolder();
  const whole = join(folder, "whole.tar");
  await done("backup", whole, "--objects", "--data", dataDir);
  const bytes = readFileSync(whole);
  const at = (text: string) => bytes.indexOf(text);
  const altered = (position: number) => {
    const copy = Buffer.from(bytes);
    copy[position] = (copy[position] as number) ^ 1;
    return copy;
  };
  const manifest = at('"format"');
  const rows: [string, Buffer, RegExp][] = [
    ["empty", Buffer.alloc(0), /cannot be restored/],
    ["text", Buffer.from("SELECT 1;\n".repeat(200)), /cut off, altered or no backup/],
    ["a third", bytes.subarray(0, Math.floor(bytes.length / 3)), /cut off|too early/],
    ["without its end", bytes.subarray(0, at("manifest.json.sha256")), /cut off|too early/],
    ["on a member's end", bytes.subarray(0, at("manifest.json")), /too early/],
    ["database altered", altered(5000), /vodbox\.db is not what was backed up/],
    ["object altered", altered(at("source of the first")), /objects\/tenants.* is not what was backed up/],
    ["secret altered", altered(at("secrets/signing_secret") + 520), /secrets\/signing_secret is not/],
    ["list altered", altered(at('{"key"') + 10), /is not what was backed up|altered/],
    ["manifest altered", altered(manifest + 20), /manifest\.json is not what was backed up/],
  ];
  for (const [name, content, reason] of rows) {
    const file = join(folder, "faulty.tar");
    writeFileSync(file, content);
    const fresh = emptyFolder();
    const sentence = await refusal(file, fresh);
    expect.soft(sentence, name).toMatch(reason);
    expect.soft(sentence, name).toContain(file);
    expect
      .soft(
        readdirSync(fresh).filter((each) => !each.startsWith("server.")),
        name,
      )
      .toEqual([]);
  }
  expect(await failed("restore", join(folder, "none.tar"), "--check")).toContain("There is no file");
  expect(await refused(["admin", "restore"], 2)).toContain("file");

  const outside = join(folder, "outside");
  for (const name of [
    "../outside",
    "/tmp/outside",
    "objects/../../outside",
    "objects//outside",
    "secrets/../outside",
  ]) {
    const tricky = pack();
    tricky.entry({ name }, "x");
    tricky.finalize();
    const file = join(folder, "tricky.tar");
    writeFileSync(file, Buffer.concat(await Array.fromAsync(tricky as AsyncIterable<Buffer>)));
    expect.soft(await refusal(file, join(folder, "data")), name).toContain("no backup of vodbox");
    expect(existsSync(outside)).toBe(false);
  }
  const link = pack();
  link.entry({ name: "vodbox.db", type: "symlink", linkname: "/etc/passwd" });
  link.finalize();
  writeFileSync(join(folder, "link.tar"), Buffer.concat(await Array.fromAsync(link as AsyncIterable<Buffer>)));
  expect(await failed("restore", join(folder, "link.tar"), "--check")).toContain("is a symlink");

  // A restore that was killed before its last step is begun anew.
  const torn = emptyFolder();
  for (const left of [".restoring", "objects", "secrets"]) mkdirSync(join(torn, left));
  writeFileSync(join(torn, "objects/half"), "x");
  await done("restore", whole, "--data", torn);
  expect(existsSync(join(torn, "objects/half"))).toBe(false);

  const database = new Sqlite(join(dataDir, "vodbox.db"));
  database.exec("INSERT INTO _migrations VALUES ('9999_future.sql', 'x', 'x')");
  database.close();
  const newer = join(folder, "newer.tar");
  // It is refused before it could be backed up; so a backup of a newer vodbox is put together here.
  expect(await failed("backup", newer, "--data", dataDir)).toContain("newer than this vodbox");
});

test("a full disk is told, and leaves nothing", async (context) => {
  const { server, dataDir } = await filledServer();
  const disk = smallDisk(context, 2);
  disk.fill();
  rmSync(join(disk.path, "filler"));
  // Room for the copy of the database, not for the archive.
  const most = statSync(join(dataDir, "vodbox.db")).size;
  const room = openSync(join(disk.path, "filler"), "w");
  writeSync(room, Buffer.alloc(Math.max(0, 2_097_152 - Math.floor(most * 1.6))));
  closeSync(room);
  expect(await failed("backup", join(disk.path, "a.tar"), "--objects", "--data", dataDir)).toMatch(/no space/i);
  expect(readdirSync(disk.path)).toEqual(["filler"]);
  expect((await server.call("GET", "/readyz")).status).toBe(200);
});
