import { chmodSync, chownSync, mkdirSync, mkdtempSync, rmSync, statSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { cacheDir } from "#src/lib/executable/cache-dir.ts";

const uid = process.geteuid?.() ?? 0;
const temporaryBefore = process.env.TMPDIR;
let folder: string;
let fallback: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "vodbox-cache-"));
  process.env.TMPDIR = folder;
  fallback = join(folder, `vodbox-${uid}`);
});
afterEach(() => {
  if (temporaryBefore === undefined) delete process.env.TMPDIR;
  else process.env.TMPDIR = temporaryBefore;
  rmSync(folder, { recursive: true, force: true });
});

test("is the setting, then XDG_CACHE_HOME, then HOME, then a directory of this user's", () => {
  const env = {
    VODBOX_CACHE_DIR: join(folder, "set"),
    XDG_CACHE_HOME: join(folder, "xdg"),
    HOME: join(folder, "home"),
  };
  expect(cacheDir(env)).toBe(env.VODBOX_CACHE_DIR);
  expect(cacheDir({ ...env, VODBOX_CACHE_DIR: undefined })).toBe(join(folder, "xdg/vodbox"));
  expect(cacheDir({ HOME: env.HOME })).toBe(join(folder, "home/.cache/vodbox"));
  expect(cacheDir({})).toBe(fallback);
  expect(statSync(fallback).mode & 0o777).toBe(0o700);
});

test("is not under a HOME that cannot be written", () => {
  expect(cacheDir({ HOME: "/proc/1" })).toBe(fallback);
});

test("refuses a symlink in its place", () => {
  mkdirSync(join(folder, "elsewhere"));
  symlinkSync(join(folder, "elsewhere"), fallback);
  expect(() => cacheDir({})).toThrow(/vodbox-\d+ is not a directory.*Set VODBOX_CACHE_DIR/);
});

test.skipIf(uid !== 0)("refuses a directory that another user created, or one in another user's home", () => {
  mkdirSync(fallback);
  chownSync(fallback, 65534, 65534);
  expect(() => cacheDir({})).toThrow(/belongs to another user/);
  const home = join(folder, "home");
  mkdirSync(join(home, ".cache"), { recursive: true });
  chownSync(join(home, ".cache"), 65534, 65534);
  expect(() => cacheDir({ HOME: home })).toThrow(/is in another user's directory/);
});

test("removes others' write permission", () => {
  mkdirSync(fallback);
  chmodSync(fallback, 0o777);
  expect(cacheDir({})).toBe(fallback);
  expect(statSync(fallback).mode & 0o777).toBe(0o700);
});
