import { expect, test } from "vitest";
import { loadConfig } from "#platform/config/load.ts";
import { emptyFolder } from "#test/support/folder.ts";
import { run } from "#test/support/process.ts";

const parsed = (VODBOX_CACHE: string) => loadConfig({ env: { VODBOX_CACHE }, cwd: emptyFolder() }).cache;

test("VODBOX_CACHE is memory by default, or names a directory or a Redis database", () => {
  expect(parsed("")).toEqual({ kind: "memory" });
  expect(parsed("memory")).toEqual({ kind: "memory" });
  expect(parsed("fs")).toEqual({ kind: "fs", path: null });
  expect(parsed("fs:/var/cache/vodbox")).toEqual({ kind: "fs", path: "/var/cache/vodbox" });
  for (const url of ["redis://10.0.0.6:6379/0", "rediss://user:pass@redis.example", "redis://[::1]:1/15"])
    expect(parsed(url)).toEqual({ kind: "redis", url });
});

test.each([
  "disk",
  "fs:relative",
  "redis:secret-word",
  "redis://",
  "http://secret-word@host:6379",
  "redis://:secret-word@host/name",
  "redis://:secret-word@host/0/1",
])("%s is refused, without its value in the message", (value) => {
  expect(() => parsed(value)).toThrow(/VODBOX_CACHE must be memory, fs, fs:\/PATH, or redis:/);
  expect(() => parsed(value)).not.toThrow(/secret-word/);
});

test("admin config masks it", async () => {
  const env = { VODBOX_CACHE: "redis://:secret-word@127.0.0.1:1/0" };
  const { code, stdout, stderr } = await run(["admin", "config", "--json"], { env, cwd: emptyFolder() });
  expect([code, stderr]).toEqual([0, ""]);
  expect(stdout).toContain('"cache"');
  expect(stdout).not.toContain("secret-word");
});
