import { execFileSync } from "node:child_process";
import {
  chmodSync,
  existsSync,
  linkSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { afterAll, beforeEach, describe, expect, test } from "vitest";
import { MediaError } from "#media/error.ts";
import {
  copyResult,
  createResult,
  listResults,
  MAX_READ_BYTES,
  MAX_RESULT_BYTES,
  makeFolder,
  moveResult,
  openResult,
  readResult,
  removeIrregular,
  removeOthers,
  statResult,
  writeResult,
} from "#media/results.ts";
import { temporaryFolder } from "#test/support/media/sources.ts";

const folder = temporaryFolder("results");
const secrets = join(folder, "secrets");
const secret = join(secrets, "name");
const work = join(folder, "work");
const rendition = join(work, "video");
const path = join(rendition, "name");

beforeEach(() => {
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(rendition, { recursive: true });
  mkdirSync(secrets);
  writeFileSync(secret, "secret");
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** What a program can leave at the name of a result. */
const left: Record<string, () => unknown> = {
  "a link to a file": () => symlinkSync(secret, path),
  "a relative link": () => symlinkSync("../../secrets/name", path),
  "a link to nothing": () => symlinkSync(join(secrets, "new"), path),
  "a link to itself": () => symlinkSync("name", path),
  "a link to a device": () => symlinkSync("/dev/zero", path),
  "a second name of a file": () => linkSync(secret, path),
  "a pipe": () => execFileSync("mkfifo", [path]),
  "a device": () => execFileSync("mknod", [path, "c", "1", "5"]),
  "a socket": () => new Promise<void>((resolve) => void createServer().unref().listen(path, resolve)),
  "a folder": () => mkdirSync(path),
  "a file for another user": () => {
    writeFileSync(path, "");
    chmodSync(path, 0o4755);
  },
  "a sparse file": () => {
    writeFileSync(path, "");
    truncateSync(path, MAX_RESULT_BYTES + 1);
  },
  "a link instead of the folder": () => {
    rmSync(rendition, { recursive: true });
    symlinkSync(secrets, rendition);
  },
  "a link instead of the folder above it": () => {
    rmSync(work, { recursive: true });
    mkdirSync(join(folder, "other/video"), { recursive: true });
    writeFileSync(join(folder, "other/video/name"), "secret");
    symlinkSync(join(folder, "other"), work);
  },
};

describe.each(Object.entries(left))("%s", (what, leave) => {
  beforeEach(leave as () => void);

  test.each([
    ["opened", () => openResult(path)],
    ["read", () => readResult(path)],
    ["measured", () => statResult(path)],
    ["copied", () => copyResult(path, join(folder, "copy"))],
    ["moved", () => moveResult(path, join(folder, "moved"))],
  ])("is not %s", async (_what, use) => {
    await expect(use()).rejects.toBeInstanceOf(MediaError);
    expect(existsSync(join(folder, "copy"))).toBe(false);
    expect(existsSync(join(folder, "moved"))).toBe(false);
  });

  test.each([
    ["written", () => writeResult(path, "new")],
    [
      "created",
      async () => {
        await using file = await createResult(path);
        await file.writeFile("new");
      },
    ],
    [
      "a target",
      async () => {
        writeFileSync(join(folder, "source"), "new");
        await moveResult(join(folder, "source"), path);
      },
    ],
  ])("changes no other file when it is %s", async (_what, use) => {
    await use().then(
      () => expect(readFileSync(path, "utf8")).toBe("new"),
      (error) => expect(error).toBeInstanceOf(MediaError),
    );
    expect(readFileSync(secret, "utf8")).toBe("secret");
    expect(readdirSync(secrets)).toEqual(["name"]);
  });

  test("is removed after the run, unless it is a folder or a regular file", async () => {
    const isKept = ["a second name of a file", "a folder", "a file for another user", "a sparse file"].includes(what);
    // The folder of the run itself is the worker's.
    if (what === "a link instead of the folder above it") return rmSync(work);
    const name = what === "a link instead of the folder" ? "video" : "name";
    expect(await removeIrregular(work)).toBe(isKept ? null : name);
    expect(existsSync(path)).toBe(isKept);
    expect(readFileSync(secret, "utf8")).toBe("secret");
  });
});

test("a file is read, measured, copied and moved", async () => {
  await writeResult(path, "content");
  expect((await readResult(path)).toString()).toBe("content");
  expect((await statResult(path)).size).toBe(7);
  await copyResult(path, join(rendition, "copy"));
  await moveResult(path, join(work, "moved"));
  expect(await listResults(rendition)).toEqual(["copy"]);
  expect(readFileSync(join(work, "moved"), "utf8")).toBe("content");
  await expect(readResult(path)).rejects.toMatchObject({ code: "ENOENT" });
});

test("a file that is too large for memory is not read, but may be delivered", async () => {
  writeFileSync(path, "");
  truncateSync(path, MAX_READ_BYTES + 1);
  await expect(readResult(path)).rejects.toBeInstanceOf(MediaError);
  await expect(readResult(path, 10)).rejects.toBeInstanceOf(MediaError);
  expect((await statResult(path)).size).toBe(MAX_READ_BYTES + 1);
});

test("a link with the name of a folder is replaced by a folder", async () => {
  symlinkSync(secrets, join(work, "audio"));
  await makeFolder(join(work, "audio"));
  expect(lstatSync(join(work, "audio")).isDirectory()).toBe(true);
  expect(readdirSync(secrets)).toEqual(["name"]);
});

test("only what is declared stays", async () => {
  mkdirSync(join(work, "more/deep"), { recursive: true });
  for (const name of ["video/1", "video/2", "more/deep/3", "4", "5"]) writeFileSync(join(work, name), "");
  symlinkSync(secrets, join(work, "link"));
  await removeOthers(work, ["video/1", "4"]);
  expect(readdirSync(work, { recursive: true }).sort()).toEqual(["4", "video", "video/1"]);
  expect(readFileSync(secret, "utf8")).toBe("secret");
});
