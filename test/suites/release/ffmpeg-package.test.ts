import { execFileSync, spawnSync } from "node:child_process";
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { beforeAll, expect, test } from "vitest";
import { own, paths } from "#scripts/build/paths.ts";
import { staticFfmpeg } from "#scripts/ffmpeg/build.ts";
import type { BuiltTools } from "#scripts/ffmpeg/cached.ts";
import { ffmpegPackage } from "#scripts/ffmpeg/packaged.ts";
import { ffmpegPackageFile, writeFfmpegPackage } from "#scripts/release/ffmpeg-package.ts";
import { emptyFolder, newFolder, removeFolder } from "#test/support/folder.ts";

/** A directory of modules with the package of the best ffmpeg that this machine has. */
let folder: string;
let modules: string;
let built: BuiltTools;
beforeAll(async () => {
  folder = newFolder();
  built = await staticFfmpeg("x64", "linked");
  await writeFfmpegPackage("x64", built, folder);
  modules = join(folder, "node_modules");
  mkdirSync(join(modules, ffmpegPackage("x64")), { recursive: true });
  const unpack = ["-xzf", join(folder, ffmpegPackageFile("x64")), "--strip-components=1"];
  execFileSync("tar", [...unpack, "-C", join(modules, ffmpegPackage("x64"))]);
  return () => removeFolder(folder);
}, 600_000);

/** What a build on a machine without a compiler, packages and cached programs uses. */
function chosen(installed: string) {
  const cache = emptyFolder();
  const script = `const { staticFfmpeg } = await import(${JSON.stringify(join(paths.root, "scripts/ffmpeg/build.ts"))});
    console.log(JSON.stringify(await staticFfmpeg("x64", "linked", ${JSON.stringify(installed)})));`;
  const env = { XDG_CACHE_HOME: cache, PATH: "/nowhere" } as unknown as NodeJS.ProcessEnv;
  const run = () => spawnSync(process.execPath, ["--input-type=module", "-e", script], { env, encoding: "utf8" });
  return { cache, run };
}

test("the package has the programs, their licences, the sources of all parts and the offer of the source", () => {
  const content = join(modules, ffmpegPackage("x64"));
  const manifest = JSON.parse(readFileSync(join(content, "package.json"), "utf8"));
  expect(manifest).toMatchObject({
    name: "@vodbox/ffmpeg-linux-x64",
    version: own.version,
    license: "GPL-2.0-or-later",
    os: ["linux"],
    cpu: ["x64"],
    vodbox: { build: basename(dirname(built.ffmpeg)), stage: built.stage },
  });
  expect(readFileSync(join(content, "COPYING.GPLv2"), "utf8")).toContain("GNU GENERAL PUBLIC LICENSE");
  const readme = readFileSync(join(content, "README.md"), "utf8");
  const versions = readFileSync(join(content, "versions.txt"), "utf8").trim();
  expect(versions).toMatch(/^ffmpeg \d/);
  expect(readme).toContain(versions);
  expect(readme).toContain("at least three years");
  expect(readme).toContain(readFileSync(join(content, "configuration.txt"), "utf8"));
});

test("a build without a compiler uses the programs of the package, once", () => {
  const { cache, run } = chosen(modules);
  const [first, again] = [run(), run()];
  expect([first.status, first.stderr]).toEqual([0, ""]);
  expect(again.stdout).toBe(first.stdout);
  const tools = JSON.parse(first.stdout);
  expect(tools.stage).toBe(built.stage);
  expect(tools.ffmpeg).toBe(join(cache, "vodbox/ffmpeg", basename(dirname(built.ffmpeg)), "ffmpeg"));
  expect(readFileSync(tools.ffmpeg).equals(readFileSync(built.ffmpeg))).toBe(true);
  expect(statSync(tools.ffprobe).ino).toBe(statSync(tools.ffmpeg).ino);
  expect(execFileSync(tools.ffprobe, ["-version"], { encoding: "utf8" })).toMatch(/^ffprobe version/);
  // Licences are where the SBOM and the notices of the executable read them.
  const files = (path: string) => readdirSync(path).sort();
  expect(files(dirname(tools.ffmpeg))).toEqual(files(dirname(built.ffmpeg)));
});

test.each([
  ["another recipe", "7_5.1.9-0+deb12u1-000000000000"],
  ["a name that leaves the cache", `../../outside-${"0".repeat(12)}`],
])("a package with %s is not used", (_, build) => {
  const other = join(emptyFolder(), "node_modules");
  cpSync(modules, other, { recursive: true });
  const file = join(other, ffmpegPackage("x64"), "package.json");
  const manifest = JSON.parse(readFileSync(file, "utf8"));
  writeFileSync(file, JSON.stringify({ ...manifest, vodbox: { ...manifest.vodbox, build } }));
  const { cache, run } = chosen(other);
  // Nothing else can be built there.
  expect(run().status).not.toBe(0);
  expect(existsSync(join(cache, "vodbox/ffmpeg", build))).toBe(false);
});

test("programs of which the sources are not known are not packed", async () => {
  const out = emptyFolder();
  await writeFfmpegPackage("x64", { ffmpeg: "/usr/bin/ffmpeg", ffprobe: "/usr/bin/ffprobe" }, out);
  expect(readdirSync(out)).toEqual([]);
});
