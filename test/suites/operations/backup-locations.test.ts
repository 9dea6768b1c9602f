import { execFileSync } from "node:child_process";
import { lstatSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { operator } from "#test/support/backups.ts";
import { refused } from "#test/support/commands/outcome.ts";
import { emptyFolder } from "#test/support/folder.ts";

const { cli, done, failed } = operator();

test("a backup replaces only regular files, and reports faults of another location", async () => {
  const folder = emptyFolder();
  const dataDir = emptyFolder();
  await done("tenant", "create", "--name", "T", "--slug", "t", "--data", dataDir);
  const [pipe, real, link, lost] = ["pipe.tar", "real.tar", "link.tar", "lost.tar"].map((name) => join(folder, name));
  execFileSync("mkfifo", [pipe as string]);
  writeFileSync(real as string, "mine");
  symlinkSync(real as string, link as string);
  symlinkSync(join(folder, "nothing"), lost as string);
  const backup = (file: string | undefined, ...more: string[]) =>
    failed("backup", file as string, ...more, "--data", dataDir);
  for (const more of [[], ["--force"]]) {
    expect(await backup(pipe, ...more)).toContain("is not a regular file");
    expect(await backup(folder, ...more)).toContain("is not a regular file");
    expect(await backup(link, ...more)).toContain("is a symbolic link");
    expect(await backup(lost, ...more)).toContain("is a symbolic link");
  }
  expect(lstatSync(pipe as string).isFIFO()).toBe(true);
  expect(lstatSync(link as string).isSymbolicLink()).toBe(true);
  expect(readFileSync(real as string, "utf8")).toBe("mine");
  expect(await backup(join(folder, "none", "x.tar"))).toContain(`The directory ${join(folder, "none")} does not exist`);
  expect(await refused(["admin", "backup", "-", "--data", dataDir], 2)).toContain("standard output");
  expect(readdirSync(folder).sort()).toEqual(["link.tar", "lost.tar", "pipe.tar", "real.tar"]);
});

test("restore --check changes nothing in the data directory, and a refused restore leaves nothing in a foreign directory", async () => {
  const folder = emptyFolder();
  const dataDir = emptyFolder();
  await done("tenant", "create", "--name", "T", "--slug", "t", "--data", dataDir);
  const file = join(folder, "a.tar");
  await done("backup", file, "--data", dataDir);
  const fresh = join(folder, "fresh");
  const foreign = join(folder, "foreign");
  expect(await done("restore", file, "--check", "--data", fresh)).toMatch(/^No faults in /);
  expect(readdirSync(folder)).toEqual(["a.tar"]);
  mkdirSync(foreign);
  expect(await done("restore", file, "--check", "--data", foreign)).toMatch(/^No faults in /);
  expect(readdirSync(foreign)).toEqual([]);
  writeFileSync(join(foreign, "photo.jpg"), "");
  expect(await failed("restore", file, "--data", foreign)).toContain("it contains photo.jpg");
  expect(readdirSync(foreign)).toEqual(["photo.jpg"]);
  expect((await cli("restore", file, "--data", fresh)).code).toBe(0);
});
