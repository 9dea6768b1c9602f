import { execFileSync, spawn, spawnSync } from "node:child_process";
import { cpSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { own } from "#scripts/build/paths.ts";
import { commandsPackage, packCommands } from "#scripts/clients/commands.ts";
import { atEnd, emptyFolder, newFolder, removeFolder } from "#test/support/folder.ts";
import { CAPTION } from "#test/support/import/library.ts";
import { fast, ffmpeg, picture } from "#test/support/media/sources.ts";
import { type Ended, type RunningServer, startServer, tenantKey, watched } from "#test/support/process.ts";

const WINDOWS = join(import.meta.dirname, "commands-windows.cjs");

/** The project's Node.js, and the system's if it is another one, which the package has to support too. */
const SYSTEM = "/usr/bin/node";
const system = spawnSync(SYSTEM, ["--version"], { encoding: "utf8" }).stdout?.trim();
const hasOther = system !== undefined && system !== "" && system !== process.version;
if (!hasOther)
  console.warn(`skipped: ${SYSTEM} is missing or the project's own; the package is tried with one version`);
const PROGRAMS = [process.execPath, ...(hasOther ? [SYSTEM] : [])];

/** The package, installed into an empty directory, a server with a worker, and videos. */
let folder: string;
let main: string;
let server: RunningServer;
let video: string;
beforeAll(async () => {
  folder = newFolder();
  const packed = await packCommands(folder);
  const project = join(folder, "project");
  mkdirSync(project);
  writeFileSync(join(project, "package.json"), "{}");
  const quiet = ["--offline", "--no-audit", "--no-fund", "--loglevel=error"];
  execFileSync("npm", ["install", ...quiet, packed], { cwd: project });
  main = join(project, "node_modules/vodbox/vodbox.cjs");
  server = await startServer(join(folder, "data"), { args: ["--workers", "1"] });
  video = join(folder, "holiday.mp4");
  await ffmpeg(...picture("64x36", "5", 1), ...fast, video);
}, 120_000);
afterAll(() => {
  server?.child.kill("SIGKILL");
  removeFolder(folder);
});

type Commands = {
  run(args: string[], env?: Record<string, string>): Promise<Ended>;
  cwd: string;
};

/** The commands in a working directory of their own, without any variable of this machine. */
function commandsWith(program: string, options: string[] = []): Commands {
  const cwd = emptyFolder();
  const run = (args: string[], env: Record<string, string> = {}) => {
    const all = { PATH: "/nowhere", HOME: cwd, ...env } as unknown as NodeJS.ProcessEnv;
    return watched(spawn(program, [...options, main, ...args], { cwd, env: all, stdio: ["ignore", "pipe", "pipe"] }))
      .ended;
  };
  return { run, cwd };
}

let tenants = 0;
async function newKey(scopes?: string[]): Promise<string> {
  if (tenants++ === 0) return tenantKey(server, scopes);
  const { as, admin } = server;
  const tenant = await as({ admin }).createTenant({ name: "T", slug: `t${tenants}` });
  const body = { tenant_id: tenant.body.id, scopes: scopes ?? ["assets:read", "assets:write", "playback:read"] };
  return (await as({ admin }).createApiKey(body)).body.token;
}

/** A tree with captions and metadata; the ids of its videos. */
function tree(): { root: string; ids: string[] } {
  const root = join(emptyFolder(), "videos");
  mkdirSync(join(root, "trip/day 1"), { recursive: true });
  cpSync(video, join(root, "film.mp4"));
  cpSync(video, join(root, "trip/day 1/walk.mp4"));
  writeFileSync(join(root, "trip/day 1/walk.en.vtt"), CAPTION);
  writeFileSync(join(root, "trip/day 1/walk.json"), JSON.stringify({ title: "A walk" }));
  return { root, ids: ["film.mp4", "trip/day 1/walk.mp4"] };
}

test("the package is one file without dependencies, with the notices of what it contains", () => {
  const manifest = JSON.parse(readFileSync(join(main, "../package.json"), "utf8"));
  expect(manifest).toMatchObject({ name: "vodbox", version: own.version, bin: { vodbox: "vodbox.cjs" } });
  expect(manifest).not.toHaveProperty("dependencies");
  expect(commandsPackage).toBe(`vodbox-${own.version}.tgz`);
  const text = readFileSync(main, "utf8");
  expect(text).not.toMatch(/require\("(libsql|@libsql|\.)/);
  const notices = readFileSync(join(main, "../NOTICES.txt"), "utf8");
  for (const name of ["commander", "@modelcontextprotocol/server", "valibot"])
    expect(notices).toMatch(new RegExp(`^${name} \\d`, "m"));
  expect(notices).not.toMatch(/^(libsql|stripe|nodemailer) \d/m);
});

test("npm links the command", () => {
  const bin = join(main, "../../.bin/vodbox");
  const shown = execFileSync(bin, ["--version"], { encoding: "utf8", cwd: emptyFolder() });
  expect(shown).toMatch(new RegExp(`^vodbox {2}${own.version}\\nnode {4}\\d+\\.`));
});

describe.each(PROGRAMS)("with %s", (program) => {
  test("pushes a file until it plays", async () => {
    const { run } = commandsWith(program);
    const env = { VODBOX_SERVER: server.base, VODBOX_KEY: await newKey() };
    const pushed = await run(["push", video, "--wait-ready", "--json"], env);
    expect(pushed.code, pushed.stderr).toBe(0);
    const [{ asset_id, watch_url }] = JSON.parse(pushed.stdout);
    expect((await fetch(watch_url)).status).toBe(200);
    const { body } = await server.as(env.VODBOX_KEY).getAsset(asset_id);
    expect(body).toMatchObject({ title: "holiday", playback_status: "ready" });
  });

  test("imports a directory, once", async () => {
    const { run } = commandsWith(program);
    const env = { VODBOX_SERVER: server.base, VODBOX_KEY: await newKey() };
    const { root, ids } = tree();
    for (const count of [2, 0]) {
      const imported = await run(["import", "folder", root, "--json"], env);
      expect(imported.code, imported.stderr).toBe(0);
      expect(JSON.parse(imported.stdout)).toMatchObject({ imported: count, failures: [] });
    }
    const { body } = await server.as(env.VODBOX_KEY).listAssets();
    expect(body.map(({ tags }) => tags.source_id).sort()).toEqual(ids);
  });

  test("administers a server, and shows its health", async () => {
    const { run } = commandsWith(program);
    await newKey();
    const env = { VODBOX_SERVER: server.base, VODBOX_ADMIN_TOKEN: server.admin };
    const listed = await run(["admin", "tenant", "list", "--json"], env);
    expect(listed).toMatchObject({ code: 0, stderr: "" });
    expect(JSON.parse(listed.stdout).length).toBeGreaterThan(0);
    expect(await run(["admin", "asset", "list"], env)).toMatchObject({ code: 0, stderr: "" });
    expect(await run(["admin", "doctor"], env)).toMatchObject({ stderr: "", stdout: expect.stringContaining("CHECK") });
    expect(await run(["health", "--server", server.base])).toMatchObject({ code: 0, stdout: "ready\n" });
  });

  test("connects an agent", async () => {
    const client = new Client({ name: "test", version: "1.0.0" });
    const env = { VODBOX_SERVER: server.base, VODBOX_KEY: await newKey(["assets:read"]), HOME: emptyFolder() };
    await client.connect(new StdioClientTransport({ command: program, args: [main, "mcp"], env, stderr: "pipe" }));
    atEnd(() => client.close());
    expect(client.getServerVersion()?.name).toBe("vodbox");
    expect((await client.listTools()).tools.map(({ name }) => name)).toContain("list_assets");
  });

  test.each([
    [
      ["serve"],
      1,
      /A server and what belongs to it do not run here: .* Use the executable of vodbox, which runs on Linux\./,
    ],
    [["worker", "--server", "http://127.0.0.1:9"], 1, /A server and what belongs to it do not run here/],
    [["demo"], 1, /A server and what belongs to it do not run here/],
    [["admin", "backup", "x"], 1, /server/],
    [["admin", "tenant", "list"], 1, /name a server with --server/],
    [["push", "x.mp4"], 2, /specify one with --server \(VODBOX_SERVER\) and VODBOX_KEY/],
    [
      ["push", "--encode", WINDOWS, "--server", "http://127.0.0.1:9", "--key", "k"],
      1,
      /^vodbox: --encode needs ffmpeg, which this package does not contain\. Use the executable/,
    ],
  ])("says what to do for %j", async (args, code, message) => {
    const { run } = commandsWith(program);
    const ended = await run(args);
    expect(ended).toMatchObject({ code, stdout: "" });
    expect(ended.stderr).toMatch(message);
    expect(ended.stderr.trim().split("\n")).toHaveLength(1);
  });

  test("an import that was killed leaves no lock, and a running one excludes another", async () => {
    const { run, cwd } = commandsWith(program);
    const env = { VODBOX_SERVER: server.base, VODBOX_KEY: await newKey() };
    const { root } = tree();
    const args = ["import", "folder", root, "--no-wait", "--json"];
    const locks = () => execFileSync("find", [cwd, "-name", "client.lock"], { encoding: "utf8" }).trim();
    expect(await run(args, env)).toMatchObject({ code: 0 });
    expect(locks()).toBe("");
    const folders = execFileSync("find", [join(cwd, ".cache/vodbox/import"), "-mindepth", "1", "-type", "d"], {
      encoding: "utf8",
    });
    const lock = join(folders.trim(), "client.lock");
    writeFileSync(lock, `${process.pid}\n`);
    const refused = await run(args, env);
    expect(refused).toMatchObject({ code: 1 });
    expect(refused.stderr).toContain("Another import uses vodbox-import-folder.ledger; wait for its end");
    const killed = spawn("true");
    await new Promise((resolve) => killed.once("close", resolve));
    writeFileSync(lock, `${killed.pid}\n`);
    expect(await run(args, env)).toMatchObject({ code: 0 });
    expect(locks()).toBe("");
  });
});

test("with paths of Windows a tree has the same ids, and is continued", async () => {
  const { run, cwd } = commandsWith(process.execPath, [WINDOWS]);
  const env = {
    VODBOX_SERVER: server.base,
    VODBOX_KEY: await newKey(),
    LOCALAPPDATA: `C:${join(cwd, "local").replaceAll("/", "\\")}`,
  };
  const { root, ids } = tree();
  const args = ["import", "folder", `C:${root.replaceAll("/", "\\")}`, "--json"];
  for (const count of [2, 0]) {
    const imported = await run(args, env);
    expect(imported.code, imported.stderr).toBe(0);
    expect(JSON.parse(imported.stdout)).toMatchObject({ imported: count, failures: [] });
  }
  const { body } = await server.as(env.VODBOX_KEY).listAssets();
  expect(body.map(({ tags }) => tags.source_id).sort()).toEqual(ids);
  expect(body.map(({ title }) => title).sort()).toEqual(["A walk", "film"]);
  expect(execFileSync("find", [join(cwd, "local"), "-name", "import"], { encoding: "utf8" })).toContain("local/vodbox");

  const pushed = await run(["push", `C:${video.replaceAll("/", "\\")}`, "--json"], env);
  expect(pushed.code, pushed.stderr).toBe(0);
  const [{ asset_id }] = JSON.parse(pushed.stdout);
  const asset = await server.as(env.VODBOX_KEY).getAsset(asset_id);
  expect(asset.body.title).toBe(basename(video, ".mp4"));
});
