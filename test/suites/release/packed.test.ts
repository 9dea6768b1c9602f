import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { once } from "node:events";
import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { amount } from "#test/support/amount.ts";
import { nightly } from "#test/support/nightly.ts";

/** The built executable alone in a directory, as a user has it. */
const built = join(import.meta.dirname, "../../../dist/vodbox");
let folder: string;
let vodbox: string;

beforeAll(() => {
  if (!existsSync(built)) throw new Error("dist/vodbox is missing: npm run build makes it.");
  folder = mkdtempSync(join(tmpdir(), "vodbox-packed-"));
  vodbox = join(folder, "vodbox");
  copyFileSync(built, vodbox);
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const version = (env: NodeJS.ProcessEnv) => execFileSync(vodbox, ["--version"], { env, cwd: folder, encoding: "utf8" });
const emptyCache = () => mkdtempSync(join(folder, "cache-"));
const filesIn = (cache: string) =>
  readdirSync(cache, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => ({ name: entry.name, path: join(entry.parentPath, entry.name), folder: entry.parentPath }));

/** Every file is in a directory that is named by its content hash. */
function expectWhole(cache: string): void {
  const files = filesIn(cache);
  expect(files.map((file) => file.name).sort()).toEqual(["ffmpeg", "ffprobe", "libsql.node", "vodbox-sandbox"]);
  for (const file of files) {
    const sha256 = createHash("sha256").update(readFileSync(file.path)).digest("hex");
    expect(file.folder.endsWith(sha256.slice(0, 16)), file.path).toBe(true);
  }
}

describe("the executable alone", () => {
  test("runs in an empty environment and reports its components", () => {
    expect(version({})).toMatch(
      /^vodbox {2}0\.\d+\.\d+\nnode {4}24\.\d+\.\d+\nlibsql {2}\d[\d.]+ \(SQLite 3[\d.]+\)\nffmpeg {2}\d\S+ \(bundled: \/.*\)\n$/,
    );
  });

  test("extracts its files once when four start at the same time", async () => {
    const cache = emptyCache();
    const started = Array.from({ length: 4 }, () => spawn(vodbox, ["--version"], { env: { VODBOX_CACHE_DIR: cache } }));
    const codes = await Promise.all(started.map(async (child: ChildProcess) => (await once(child, "close"))[0]));
    expect(codes).toEqual([0, 0, 0, 0]);
    expectWhole(cache);
  });

  nightly("extracts a program with two names once", () => {
    const cache = emptyCache();
    version({ VODBOX_CACHE_DIR: cache });
    const files = filesIn(cache).filter(({ name }) => name === "ffmpeg" || name === "ffprobe");
    // Named by content: two programs, of a builder who supplies others, are in two directories.
    const folders = new Set(files.map((file) => file.folder));
    expect(new Set(files.map(({ path }) => statSync(path).ino)).size).toBe(folders.size);
  });

  test("recovers from a kill during extraction", async () => {
    const cache = emptyCache();
    for (let delayMs = 20; delayMs <= 200; delayMs += amount(60, 20)) {
      const child = spawn(vodbox, ["--version"], { env: { VODBOX_CACHE_DIR: cache } });
      const timer = setTimeout(() => child.kill("SIGKILL"), delayMs);
      await once(child, "close");
      clearTimeout(timer);
    }
    expect(version({ VODBOX_CACHE_DIR: cache })).toContain("(bundled: ");
    // The next process that has to extract also deletes what killed ones left.
    for (const file of filesIn(cache)) if (!file.name.endsWith(".part")) rmSync(file.path);
    version({ VODBOX_CACHE_DIR: cache });
    expectWhole(cache);
  });

  test("replaces files that were truncated or extended", () => {
    const cache = emptyCache();
    version({ VODBOX_CACHE_DIR: cache });
    for (const file of filesIn(cache)) {
      const content = readFileSync(file.path);
      // Copied, because a running program cannot be overwritten.
      rmSync(file.path);
      writeFileSync(file.path, file.name === "ffprobe" ? Buffer.concat([content, content]) : content.subarray(0, 5000));
    }
    expect(version({ VODBOX_CACHE_DIR: cache })).toMatch(/SQLite 3.*\n.*bundled/);
    expectWhole(cache);
  });

  test("prefers the operator's ffmpeg, then the bundled one, and ignores PATH's", () => {
    const cache = emptyCache();
    const programs = mkdtempSync(join(folder, "programs-"));
    for (const name of ["ffmpeg", "ffprobe"]) {
      writeFileSync(join(programs, name), "#!/bin/sh\necho ffmpeg version 99-theirs\n");
      chmodSync(join(programs, name), 0o755);
    }
    const env = { VODBOX_CACHE_DIR: cache, PATH: `${programs}:/bin` };
    expect(version(env)).toContain(`(bundled: ${cache}`);
    expect(version({ ...env, VODBOX_FFMPEG: join(programs, "ffmpeg") })).toContain("ffmpeg  99-theirs (setting: ");
    expect(version({ ...env, VODBOX_FFMPEG: "ffmpeg" })).toContain("ffmpeg  99-theirs (setting: ");
    expect(version({ ...env, VODBOX_FFMPEG: "/no/such" })).toMatch(/ffmpeg {2}not usable: VODBOX_FFMPEG is \/no\/such/);
  });

  test("says what to do where it cannot extract", () => {
    const shown = version({ VODBOX_CACHE_DIR: "/proc/vodbox" });
    expect(shown).toMatch(
      /libsql {2}not usable: No directory to extract files to: \/proc\/vodbox .*Set VODBOX_CACHE_DIR/,
    );
  });
});

describe("from the sources", () => {
  /** The checkout without the ffmpeg that a build puts there. */
  function checkout(): string {
    const copy = mkdtempSync(join(folder, "checkout-"));
    const root = join(import.meta.dirname, "../../..");
    execFileSync("cp", ["-r", join(root, "cli"), join(root, "src"), join(root, "package.json"), copy]);
    execFileSync("ln", ["-s", join(root, "node_modules"), join(copy, "node_modules")]);
    execFileSync("mkdir", ["-p", join(copy, "build/assets")]);
    writeFileSync(join(copy, "build/assets/build-info.json"), `{"version":"0","libsql":"0"}`);
    return copy;
  }

  test("falls back to PATH, and says so when that has none either", () => {
    const programs = mkdtempSync(join(folder, "programs-"));
    for (const name of ["ffmpeg", "ffprobe"]) {
      writeFileSync(join(programs, name), "#!/bin/sh\necho ffmpeg version 99-theirs\n");
      chmodSync(join(programs, name), 0o755);
    }
    const main = join(checkout(), "cli/main.ts");
    const run = (path: string) =>
      execFileSync(process.execPath, [main, "--version"], { env: { ...process.env, PATH: path }, encoding: "utf8" });
    expect(run(`${programs}:/bin`)).toContain(`ffmpeg  99-theirs (path: ${programs}/ffmpeg)`);
    expect(run("/nowhere")).toMatch(/ffmpeg {2}not usable: There is no ffmpeg: .*Install ffmpeg, or set VODBOX_FFMPEG/);
  });
});
