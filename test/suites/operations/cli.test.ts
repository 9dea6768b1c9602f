import { execFile } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import type { Command } from "commander";
import { describe, expect, test } from "vitest";
import { visibleCommands } from "#cli/completion.ts";
import { createProgram } from "#cli/program.ts";
import { extractSettings, settingFlags } from "#cli/settings.ts";
import { everyNth, rows } from "#test/support/amount.ts";
import { json, refused, succeeded } from "#test/support/commands/outcome.ts";
import { emptyFolder } from "#test/support/folder.ts";
import { fast, ffmpeg, picture } from "#test/support/media/sources.ts";
import { nightly } from "#test/support/nightly.ts";
import { EXECUTABLE, lineOf, run, startServer, vodbox } from "#test/support/process.ts";

/** Those that users see: not what `serve` starts. */
const every = (command: Command, path: string[] = []): { command: Command; path: string[] }[] => [
  { command, path },
  ...visibleCommands(command).flatMap((one) => every(one, [...path, one.name()])),
];
/** A small video, at its path. */
async function clip(folder: string, name: string, seconds: number): Promise<string> {
  const path = join(folder, name);
  await ffmpeg(...picture("320x180", "30", seconds), ...fast, path);
  return path;
}
const all = every(createProgram({ flags: {}, json: false }));

describe("the help", () => {
  test.each(everyNth(all, 12))("of vodbox $path has an example and names --json", async ({ path }) => {
    const { code, stdout } = await run([...path, "--help"]);
    expect(code).toBe(0);
    expect(stdout).toMatch(/^ {2}--json /m);
    expect(stdout).toMatch(/\nExamples:\n {2}\$ /);
    for (const [, example = ""] of stdout.matchAll(/^ {2}\$ (.*)$/gm)) checkExample(example);
  });

  /** The command exists, and has the options and at least the arguments that it needs. */
  function checkExample(example: string): void {
    const [, args = ""] = /\bvodbox(?: (.*?))?(?: > .*|\))?$/.exec(example) ?? [];
    const { rest } = extractSettings(args.split(" ").filter(Boolean));
    let command = all[0]?.command as Command;
    let at = 0;
    for (; at < rest.length; at++) {
      const next = command.commands.find((one) => one.name() === rest[at]);
      if (!next) break;
      command = next;
    }
    const names = command.options.map(({ long }) => long);
    for (const flag of rest.slice(at).filter((word) => word.startsWith("--")))
      expect([example, names.includes(flag) || settingFlags().includes(flag)]).toEqual([example, true]);
    const required = command.registeredArguments.filter((argument) => argument.required).length;
    expect([example, rest.length - at >= required]).toEqual([example, true]);
    for (const { long, mandatory } of command.options)
      if (mandatory) expect([example, rest.includes(long as string)]).toEqual([example, true]);
  }
});

test.each(
  rows(
    [
      [["srve"], "Did you mean serve?"],
      [["serve", "--prot", "80"], "Did you mean --port?"],
      [["admin", "tenant", "lst"], "Did you mean list?"],
      [["amdin", "tenant", "list"], "Did you mean admin?"],
      [["serve", "--wrokers=2"], "Did you mean --workers?"],
      [["push", "a.mp4", "--titel", "x"], "Did you mean --title?"],
      [["admin", "tenat", "list"], "Did you mean tenant?"],
      [["admin", "tenant", "create", "--nmae", "x"], "Did you mean --name?"],
    ],
    3,
  ),
)("vodbox %j is wrong usage, with a suggestion", async (args, hint) => {
  expect(await refused(args, 2)).toContain(hint);
});

test("errors are JSON with --json, with the code of the API", async () => {
  const dataDir = emptyFolder();
  await json(["admin", "tenant", "create", "--name", "A", "--slug", "a", "--data", dataDir]);
  const error = async (...args: string[]) => {
    const { code, stdout, stderr } = await run([...args, "--json"], { env: { VODBOX_LOG_LEVEL: "error" } });
    expect(stdout).toBe("");
    return { exit: code, ...JSON.parse(stderr).error };
  };
  expect(await error("admin", "tenant", "show", "b", "--data", dataDir)).toEqual({
    exit: 1,
    message: "No such tenant.",
    code: "not_found",
  });
  expect(await error("admin", "tenant", "delete", "a", "--confirm", "b", "--data", dataDir)).toMatchObject({
    exit: 1,
    code: "confirmation_required",
  });
  expect(await error("srve")).toMatchObject({ exit: 2, message: expect.stringContaining("Did you mean serve?") });
  expect(await error("serve", "--port", "x")).toMatchObject({ exit: 2, message: expect.stringContaining("--port") });
  expect(Object.keys(await json(["--version"]))).toEqual(["vodbox", "node", "libsql", "ffmpeg"]);
});

describe("a data directory", () => {
  const commands = [
    ["tenant", "list"],
    ["tenant", "show", "a"],
    ["key", "list", "--tenant", "a"],
    ["job", "list"],
    ["token", "show"],
    ["token", "rotate", "live"],
    ["audit"],
    ["usage"],
    ["storage", "status"],
    ["backup", "out.tar"],
  ];
  test("is created by no admin command, and the sentence names it", async () => {
    const folder = emptyFolder();
    const missing = join(folder, "none");
    const empty = join(folder, "empty");
    mkdirSync(empty);
    // In the full tier every second one in each of them.
    for (const [first, dataDir] of [missing, empty].entries())
      for (const args of everyNth(commands, 2, first)) {
        const sentence = await refused(["admin", ...args, "--data", dataDir], 1, { cwd: folder });
        expect(sentence).toContain(dataDir);
      }
    expect((await run(["admin", "doctor", "--data", missing])).code).toBe(1);
    await succeeded(["admin", "config", "--data", missing]);
    expect(readdirSync(folder)).toEqual(["empty"]);
    expect(readdirSync(empty)).toEqual([]);
  });

  test("is created by admin tenant create", async () => {
    const dataDir = join(emptyFolder(), "new");
    await json(["admin", "tenant", "create", "--name", "A", "--slug", "a", "--data", dataDir]);
    expect(await json(["admin", "tenant", "list", "--data", dataDir])).toHaveLength(1);
  });
});

describe("a named server", () => {
  test("is used by admin, and the data directory of this machine is ignored", async () => {
    const server = await startServer(emptyFolder());
    const local = emptyFolder();
    await json(["admin", "tenant", "create", "--name", "Local", "--slug", "local", "--data", local]);
    await json(["admin", "tenant", "create", "--name", "Far", "--slug", "far", "--data", server.dataDir], {
      env: { VODBOX_ADMIN_TOKEN: server.admin },
    });
    const at = ["--data", local];
    const env = { VODBOX_SERVER: server.base, VODBOX_ADMIN_TOKEN: server.admin };
    const slugs = async (args: string[], options = {}) =>
      (await json(["admin", "tenant", "list", ...args], options)).map((one: { slug: string }) => one.slug);
    expect(await slugs(at)).toEqual(["local"]);
    expect(await slugs(at, { env })).toEqual(["far"]);
    const flag = ["--server", `${server.base}/`, ...at];
    expect(await slugs(flag, { env: { VODBOX_ADMIN_TOKEN: server.admin } })).toEqual(["far"]);
    // Neither the token of the local directory, nor a flag for it.
    expect(await refused(["admin", "tenant", "list", ...flag], 2)).toContain("Set VODBOX_ADMIN_TOKEN");
    const wrong = { VODBOX_SERVER: server.base, VODBOX_ADMIN_TOKEN: "another-admin-token" };
    expect(await refused(["admin", "tenant", "list"], 1, { env: wrong })).toContain("The admin token is wrong");
    // A check that takes longer than five seconds reports its progress as well.
    const { findings } = JSON.parse((await run(["admin", "doctor", "--json", ...at], { env })).stdout);
    expect(findings.map((finding: { check: string }) => finding.check)).toContain("ffmpeg");
    for (const command of [["job", "list"], ["audit"], ["usage"], ["storage", "status"], ["user", "list"]])
      await succeeded(["admin", ...command], { env });
    expect(await refused(["admin", "tenant", "list", "--server", "nowhere"], 2)).toContain("is not a URL");
    const none = { VODBOX_SERVER: "http://127.0.0.1:9", VODBOX_ADMIN_TOKEN: server.admin };
    await refused(["admin", "tenant", "list"], 1, { env: none });
    // The server's settings, not those of this shell.
    const shell = { VODBOX_ADMIN_TOKEN: server.admin, VODBOX_LEASE_SECONDS: "77" };
    const shown = await json(["admin", "config", "--data", server.dataDir], { env: shell });
    const lease = shown.find((row: { setting: string }) => row.setting === "lease_seconds");
    expect(lease).toMatchObject({ value: expect.any(Number), origin: "default" });
    expect(lease.value).not.toBe(77);
    const text = await run(["admin", "config", "--data", server.dataDir], { env: shell });
    expect(text.stdout).toContain(`These are the settings of the server at ${server.base}.`);
    const without = await run(["admin", "config", "--data", local], { env: shell });
    expect(without.stdout).toMatch(/lease_seconds +77/);
    expect(without.stdout).toContain(`No server runs on ${local}`);
  });

  nightly("does not change what works only on this machine", async () => {
    const local = emptyFolder();
    await json(["admin", "tenant", "create", "--name", "Local", "--slug", "local", "--data", local]);
    const env = { VODBOX_SERVER: "http://127.0.0.1:9" };
    const file = join(local, "..", "backup.tar");
    await succeeded(["admin", "config", "--data", local], { env });
    expect((await run(["admin", "backup", file, "--data", local, "--force"], { env })).code).toBe(0);
    expect(existsSync(file)).toBe(true);
    expect(await refused(["admin", "backup", file, "--server", "http://127.0.0.1:9"], 2)).toContain("unknown option");
    expect((await run(["admin", "doctor", "--fix", "--data", local], { env })).code).toBe(0);
  });
});

describe("vodbox push", () => {
  test("needs nothing but a running server: the shortest path to a playing video", async () => {
    const folder = emptyFolder();
    const source = await clip(folder, "clip.mp4", 2);
    const server = await startServer(join(folder, "vodbox-data"), { args: ["--workers", "1"] });
    const env = { VODBOX_ADMIN_TOKEN: server.admin, VODBOX_CACHE_DIR: join(folder, "cache") };
    const pushed = await run(["push", source, "--wait-ready"], { cwd: folder, env });
    expect([pushed.code, pushed.stderr]).toEqual([0, expect.stringContaining("created the tenant default")]);
    const [, url = ""] = /(http\S+\/watch\/\S+)/.exec(pushed.stdout) ?? [];
    const page = await fetch(url);
    expect([url, page.status]).toEqual([url, 200]);
    // The second time the tenant exists.
    const other = await clip(folder, "other.mp4", 1);
    const [second] = await json(["push", other, "--wait-ready"], { cwd: folder, env });
    expect(second.watch_url).toMatch(/\/watch\/vid_/);
    const { admin } = server;
    await server.as({ admin }).createTenant({ name: "B", slug: "b" });
    expect(await refused(["push", other], 2, { cwd: folder, env })).toContain("--tenant SLUG");
    const [third] = await json(["push", other, "--tenant", "b"], { cwd: folder, env });
    expect((await server.as({ admin }).getAsset(third.asset_id)).body.tenant_id).toBe(2);
    expect(await refused(["push", other], 2, { cwd: emptyFolder() })).toContain("No server runs on");
  });

  test("uploads the other files when one cannot be read or encoded", async () => {
    const folder = emptyFolder();
    const good = await clip(folder, "good.mp4", 1);
    const bad = join(folder, "bad.mp4");
    writeFileSync(bad, "not a video");
    const server = await startServer(join(folder, "vodbox-data"), { args: ["--workers", "1"] });
    const env = { VODBOX_ADMIN_TOKEN: server.admin, VODBOX_CACHE_DIR: join(folder, "cache") };
    const files = [join(folder, "none.mp4"), good, bad];
    const { code, stdout, stderr } = await run(["push", ...files, "--wait-ready", "--json"], { cwd: folder, env });
    expect(code).toBe(1);
    expect(JSON.parse(stdout)).toEqual([
      expect.objectContaining({ path: good, watch_url: expect.stringContaining("/watch/") }),
      expect.objectContaining({ path: bad }),
    ]);
    const { message } = JSON.parse(stderr.trim().split("\n").at(-1) as string).error;
    expect(message).toMatch(
      /^2 of 3 files .*none\.mp4 does not exist.*bad\.mp4 was uploaded as asset \d+, but not encoded/,
    );
  });
});

test("a worker reports at once that it is connected", async () => {
  const server = await startServer(emptyFolder());
  const env = { VODBOX_WORKER_TOKEN: server.worker };
  const worker = vodbox(["worker", "--server", server.base, "--scratch", emptyFolder()], { env });
  await expect.poll(() => worker.stderr(), { timeout: 30_000 }).toContain("Connected to the server; waiting for jobs.");
});

test("serve logs one line for all migrations, and does not warn about variables of other commands", async () => {
  const env = { VODBOX_LOG_LEVEL: "info", VODBOX_KEY: "x", VODBOX_SERVER: "http://127.0.0.1:9" };
  const server = await startServer(emptyFolder(), { env, isFirst: true });
  await lineOf(server, /listening on/);
  const logged = server
    .stderr()
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line));
  expect(logged.filter(({ msg }) => msg === "migrating the database")).toHaveLength(1);
  expect(logged.filter(({ level }) => level !== "info")).toEqual([]);
});

describe("completion", () => {
  const complete = async (words: string[]) => {
    const script = `source <(${EXECUTABLE} completion bash); COMP_WORDS=(${words.map((word) => `'${word}'`).join(" ")}); COMP_CWORD=${words.length - 1}; _vodbox; printf '%s\\n' "\${COMPREPLY[@]}"`;
    return (await promisify(execFile)("bash", ["-c", script])).stdout.trim().split("\n");
  };
  test("of bash knows commands and options of this version", async () => {
    expect(await complete(["vodbox", "ser"])).toEqual(["serve"]);
    expect(await complete(["vodbox", "admin", "tenant", "cr"])).toEqual(["create"]);
    expect(await complete(["vodbox", "admin", "tenant", "create", "--sl"])).toEqual(["--slug"]);
    expect(await complete(["vodbox", "admin", "--data", "x", "job", "pri"])).toEqual(["prioritize"]);
    expect(await complete(["vodbox", "serve", "--por"])).toEqual(["--port"]);
  });
  test("of fish knows them too", async () => {
    const { stdout: script } = await succeeded(["completion", "fish"]);
    const file = join(emptyFolder(), "vodbox.fish");
    writeFileSync(file, script);
    const offered = async (line: string) =>
      (await promisify(execFile)("fish", ["--no-config", "-c", `source ${file}; complete -C '${line}'`])).stdout
        .trim()
        .split("\n")
        .map((offer) => offer.split("\t")[0]);
    expect(await offered("vodbox ser")).toEqual(["serve"]);
    expect(await offered("vodbox admin tenant cr")).toEqual(["create"]);
    expect(await offered("vodbox admin tenant create --sl")).toEqual(["--slug"]);
  });
  test("of zsh is a valid script", async () => {
    const { stdout: script } = await succeeded(["completion", "zsh"]);
    const file = join(emptyFolder(), "_vodbox");
    writeFileSync(file, script);
    expect(await promisify(execFile)("zsh", ["-n", file])).toEqual({ stdout: "", stderr: "" });
  });
  test.each(["bash", "zsh", "fish"])("for %s is a script that names every command", async (shell) => {
    const { stdout } = await succeeded(["completion", shell]);
    for (const { path } of all) for (const word of path) expect(stdout).toContain(word);
  });
  test("for another shell is refused", async () => {
    expect(await refused(["completion", "tcsh"], 2)).toContain("use bash, zsh or fish");
  });
});
