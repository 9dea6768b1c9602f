import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { CONFIGURATION, VERSIONS } from "../ffmpeg/cached.ts";
import { LIBRARY_NOTICES } from "../ffmpeg/recipe.ts";
import { notices } from "../licences.ts";
import { type Arch, libsqlLibrary, nodeProgram } from "./base.ts";
import { bundle } from "./bundle.ts";
import { writeExecutable } from "./executable.ts";
import type { BuildKind } from "./kind.ts";
import { pack } from "./pack.ts";
import { paths } from "./paths.ts";
import { say, step } from "./report.ts";
import { run } from "./run.ts";
import { sandboxLauncher } from "./sandbox.ts";
import { share } from "./share.ts";
import { type Tools, tryTools } from "./tools.ts";
import { warmAssets } from "./warm.ts";
import { whisperHelpers, whisperLibraries } from "./whisper.ts";

/**
 * Writes the executable for `arch` with `tools` to the path `result`, from assets that are complete (`writeAssets`). One for this machine's
 * processor is also started.
 */
export async function buildExecutable(
  arch: Arch,
  result: string,
  { tools, kind }: { tools: Tools; kind: BuildKind },
): Promise<void> {
  const native = arch === process.arch;
  mkdirSync(paths.work, { recursive: true });
  const { ffmpeg, ffprobe } = tools;
  if (native) say(`ffmpeg ${await tryTools(tools)} transcodes`);
  const main = join(paths.work, "vodbox.cjs");
  await step("bundle", () => bundle(main));
  const libsql = await libsqlLibrary(arch);
  const launcher = await step("sandbox", () => sandboxLauncher(arch));
  const whisper = await step("speech recognition", () => whisperLibraries(arch));
  if (native) share({ ffmpeg, ffprobe, ...launcher, ...(await whisperHelpers(arch)) });
  const programs = { ffmpeg, ffprobe, ...launcher, "libsql.node": libsql, ...whisper };
  const packed = await step("compress", () => pack(programs, paths.work, kind));
  const licences = join(paths.work, "licences.txt");
  writeFileSync(licences, notices(await otherNotices(arch, tools)));
  const assets = { ...assetFiles(), ...packed, "licences.txt": licences };
  const isWarm = native && kind !== "development";
  const withCode = () => warmAssets({ arch, main, assets, result }, isWarm);
  const warm = await (isWarm ? step("warm code", withCode) : withCode());
  await step("executable", () => writeExecutable({ arch, ...warm, result }));
  const megabytes = (statSync(result).size / 1e6).toFixed(0);
  say(`${relative(paths.root, result)}: ${megabytes} MB`);
  // In an empty environment, as on another machine; extracted files stay in the build directory.
  if (native) say(await run(result, ["--version"], { env: { VODBOX_CACHE_DIR: join(paths.work, "cache") } }));
}

async function otherNotices(arch: Arch, tools: Tools): Promise<Record<string, string>> {
  const node = readFileSync(join(dirname(await nodeProgram(arch)), "../LICENSE"), "utf8");
  // An ffmpeg that the builder supplies has its own notices.
  const ofFfmpeg = (name: string) => join(dirname(tools.ffmpeg), name);
  const [versions, gpl, configuration] = [VERSIONS, "COPYING.GPLv2", CONFIGURATION].map(ofFfmpeg) as [
    string,
    string,
    string,
  ];
  // Which of them are linked depends on the stage.
  const libraries = Object.entries(LIBRARY_NOTICES)
    .map(([file, name]) => ({ name, path: ofFfmpeg(file) }))
    .filter(({ path }) => existsSync(path));
  const common = { "Node.js": node, "whisper.cpp and whisper.node": whisperNotice() };
  if (![versions, gpl, configuration].every(existsSync)) return common;
  const source = `Built from these source packages of Debian:\n${readFileSync(versions, "utf8")}`;
  const how = `with: ./configure ${readFileSync(configuration, "utf8")}`;
  return {
    ...common,
    FFmpeg: [source, how, readFileSync(gpl, "utf8")].join("\n"),
    ...Object.fromEntries(libraries.map(({ name, path }) => [name, readFileSync(path, "utf8")])),
  };
}

/** The package of the library has no file with it. */
const whisperNotice = () => readFileSync(join(paths.root, "scripts/build/whisper-licence.txt"), "utf8");

function assetFiles(): Record<string, string> {
  const files = readdirSync(paths.assets, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name));
  const named = files.map((path) => [relative(paths.assets, path), path] as const);
  // ffmpeg and ffprobe are embedded compressed.
  return Object.fromEntries(named.filter(([name]) => !name.startsWith("bin/")));
}
