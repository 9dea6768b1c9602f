import {
  copyFileSync,
  existsSync,
  constants as fsConstants,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { dirname, join, relative } from "node:path";
import { parseArgs } from "node:util";
import { writeAssets } from "./build/assets.ts";
import { type Arch, libsqlLibrary, nodeProgram } from "./build/base.ts";
import { bundle } from "./build/bundle.ts";
import { writeExecutable } from "./build/executable.ts";
import { pack } from "./build/pack.ts";
import { paths } from "./build/paths.ts";
import { step } from "./build/report.ts";
import { run } from "./build/run.ts";
import { sandboxLauncher } from "./build/sandbox.ts";
import { chooseTools, type Tools, tryTools } from "./build/tools.ts";
import { warmAssets } from "./build/warm.ts";
import { configureArguments } from "./ffmpeg/recipe.ts";
import { notices } from "./licences.ts";

const usage = "usage: npm run build -- [--assets-only] [--arch x64|arm64]";

async function main(): Promise<void> {
  const { values } = parseArgs({ options: { "assets-only": { type: "boolean" }, arch: { type: "string" } } });
  const arch = values.arch ?? process.arch;
  if (arch !== "x64" && arch !== "arm64") throw new Error(`There is no vodbox for ${arch}. ${usage}`);
  await step("assets", writeAssets);
  if (!values["assets-only"]) await buildExecutable(arch);
}

async function buildExecutable(arch: Arch): Promise<void> {
  const native = arch === process.arch;
  const result = native ? paths.result : `${paths.result}-${arch}`;
  mkdirSync(paths.work, { recursive: true });
  const tools = await step("ffmpeg", () => chooseTools(arch));
  if (native) {
    console.log(`ffmpeg ${await tryTools(tools)} transcodes`);
  }
  const main = join(paths.work, "vodbox.cjs");
  await step("bundle", () => bundle(main));
  const libsql = await libsqlLibrary(arch);
  const launcher = await step("sandbox", () => sandboxLauncher(arch));
  if (native) share({ ...tools, ...launcher });
  const packed = await step("compress", () => pack({ ...tools, ...launcher, "libsql.node": libsql }, paths.work));
  const licences = join(paths.work, "licences.txt");
  writeFileSync(licences, notices(await otherNotices(arch, tools)));
  const assets = { ...assetFiles(), ...packed, "licences.txt": licences };
  const warm = await step("warm code", () => warmAssets({ arch, main, assets, result }, native));
  await step("executable", () => writeExecutable({ arch, ...warm, result }));
  const megabytes = (statSync(result).size / 1e6).toFixed(0);
  console.log(`${relative(paths.root, result)}: ${megabytes} MB`);
  // Alone, as on a stranger's machine; what it unpacks stays in the build's folder.
  if (native) console.log(await run(result, ["--version"], { env: { VODBOX_CACHE_DIR: join(paths.work, "cache") } }));
}

async function otherNotices(arch: Arch, tools: Tools): Promise<Record<string, string>> {
  const node = readFileSync(join(dirname(await nodeProgram(arch)), "../LICENSE"), "utf8");
  // An ffmpeg that the builder chose brings its own notices.
  const ofFfmpeg = (name: string) => join(dirname(tools.ffmpeg), name);
  const [versions, gpl, dav1d] = [ofFfmpeg("versions.txt"), ofFfmpeg("COPYING.GPLv2"), ofFfmpeg("COPYING.dav1d")];
  if (![versions, gpl, dav1d].every(existsSync)) return { "Node.js": node };
  const source = `Built from these source packages of Debian:\n${readFileSync(versions, "utf8")}`;
  const how = `with: ./configure ${configureArguments("REVISION").join(" ")}`;
  return {
    "Node.js": node,
    FFmpeg: [source, how, readFileSync(gpl, "utf8")].join("\n"),
    "dav1d, in FFmpeg": readFileSync(dav1d, "utf8"),
  };
}

/** From the sources the same programs are used as from the executable. */
function share(programs: Record<string, string>): void {
  const folder = join(paths.assets, "bin");
  mkdirSync(folder, { recursive: true });
  for (const [name, program] of Object.entries(programs)) {
    const path = join(folder, name);
    copyFileSync(program, `${path}.new`, fsConstants.COPYFILE_FICLONE);
    renameSync(`${path}.new`, path);
  }
}

function assetFiles(): Record<string, string> {
  const files = readdirSync(paths.assets, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name));
  const named = files.map((path) => [relative(paths.assets, path), path] as const);
  // ffmpeg and ffprobe go in compressed.
  return Object.fromEntries(named.filter(([name]) => !name.startsWith("bin/")));
}

main().catch((error: unknown) => {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 1;
});
