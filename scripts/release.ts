import {
  chmodSync,
  copyFileSync,
  cpSync,
  existsSync,
  globSync,
  mkdirSync,
  readdirSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { writeAssets } from "./build/assets.ts";
import type { Arch } from "./build/base.ts";
import { buildExecutable } from "./build/build-executable.ts";
import { type BuildKind, gzipLevel } from "./build/kind.ts";
import { paths } from "./build/paths.ts";
import { step } from "./build/report.ts";
import { chooseTools } from "./build/tools.ts";
import { packCommands } from "./clients/commands.ts";
import { writeGoPackage } from "./clients/go/package.ts";
import { packN8n } from "./clients/n8n.ts";
import { packClients } from "./clients/pack.ts";
import { writePhpPackage, writeWordPressPlugin } from "./clients/php/package.ts";
import { writePythonPackages } from "./clients/python/package.ts";
import type { Wish } from "./ffmpeg/build.ts";
import { STAGES } from "./ffmpeg/components.ts";
import { targetFor } from "./ffmpeg/recipe.ts";
import { installBuildPackages } from "./ffmpeg/source.ts";
import { checkGpgKey } from "./release/apt/gpg.ts";
import { type AptOptions, writeAptRepository } from "./release/apt/repository.ts";
import { writeChart } from "./release/chart.ts";
import { sha256, writeChecksums } from "./release/checksums.ts";
import { writeDeb } from "./release/deb/deb.ts";
import { writeFfmpegPackage } from "./release/ffmpeg-package.ts";
import { writeFormula } from "./release/homebrew.ts";
import { writeImage } from "./release/image/image.ts";
import { installer } from "./release/installer.ts";
import { artifactNames } from "./release/names.ts";
import { writeProvenance } from "./release/provenance.ts";
import { sbom } from "./release/sbom.ts";
import { publicKeyOf, signFiles } from "./release/sign.ts";
import { releaseTime } from "./release/time.ts";

const usage = `usage: npm run release -- [--arch x64|arm64] [--out DIR] [--stage STAGE] [--base-url URL]
         [--executable FILE]
         [--minisign-key FILE] [--apt --apt-key KEY [--apt-from DIR] [--apt-valid-days N]]
  --arch ARCH     only for this processor; default: both
  --out DIR       directory of the result, which is replaced; default: release
  --stage STAGE   of ffmpeg: complete, the default, or another one, for tests of a release that take no hour
  --executable FILE  built before, for this processor, for tests of a release that build nothing twice
  --base-url URL  where the files will be published; the installer's default, and Homebrew's formula
  --minisign-key FILE  signs every file with this secret key; the installer then verifies that
  --apt           also writes an apt repository, to apt/
  --apt-key KEY   the key of gpg that signs the repository
  --apt-from DIR  an earlier repository, whose packages stay in the new one
  --apt-valid-days N  apt refuses the repository after N days; default: never`;

const OPTIONS = {
  arch: { type: "string" },
  out: { type: "string" },
  stage: { type: "string" },
  executable: { type: "string" },
  "base-url": { type: "string" },
  "minisign-key": { type: "string" },
  apt: { type: "boolean" },
  "apt-key": { type: "string" },
  "apt-from": { type: "string" },
  "apt-valid-days": { type: "string" },
} as const;

type Values = ReturnType<typeof parseArgs<{ options: typeof OPTIONS }>>["values"];

async function main(): Promise<void> {
  const { values } = parseArgs({ options: OPTIONS });
  const arches = (["x64", "arm64"] as const).filter((arch) => values.arch === undefined || values.arch === arch);
  if (arches.length === 0) throw new Error(`There is no vodbox for ${values.arch}.\n${usage}`);
  const wish = values.stage ?? "complete";
  const stage = STAGES.find((one) => one === wish);
  if (!stage) throw new Error(`ffmpeg has no stage ${wish}.\n${usage}`);
  const out = resolve(values.out ?? join(paths.root, "release"));
  refuseOthersFiles(out);
  // Keys that cannot be used are reported before the minutes that a release takes.
  const signingKey = values["minisign-key"];
  const publicKey = signingKey ? publicKeyOf(signingKey) : "";
  const apt = await aptOptions(values);
  const baseUrl = values["base-url"] ?? "";
  const unfinished = `${out}.${process.pid}`;
  try {
    mkdirSync(unfinished, { recursive: true });
    // What tests of a release need is not compressed as small as possible, which takes a minute.
    const kind: BuildKind = stage === "complete" ? "release" : "tests";
    const built = (arch: Arch) => (arch === process.arch ? values.executable : undefined);
    if (!arches.every(built)) await step("assets", () => writeAssets(kind));
    for (const arch of arches)
      await writeArtifacts(arch, { wish: stage, kind, folder: unfinished, built: built(arch) });
    await step("Python client", () => writePythonPackages(unfinished));
    await step("PHP client", () => writePhpPackage(unfinished));
    await step("WordPress plugin", () => writeWordPressPlugin(unfinished));
    await step("n8n nodes", () => packN8n(unfinished));
    await step("Go client", () => writeGoPackage(unfinished));
    await step("npm packages", () => packClients(unfinished));
    await step("commands", () => packCommands(unfinished));
    const script = join(unfinished, "install.sh");
    writeFileSync(script, installer(baseUrl, publicKey));
    chmodSync(script, 0o755);
    for (const name of globSync("*.*", { cwd: join(paths.root, "deploy") }))
      cpSync(join(paths.root, "deploy", name), join(unfinished, name));
    await step("Helm chart", () => writeChart(unfinished));
    if (baseUrl) await writeFormula(unfinished, baseUrl, arches);
    await writeProvenance(unfinished, { architectures: arches, stage, base_url: baseUrl });
    await writeChecksums(unfinished);
    if (signingKey) signFiles(unfinished, signingKey);
    const debs = arches.map((arch) => join(unfinished, artifactNames(arch).deb));
    if (apt) await step("apt repository", () => writeAptRepository(join(unfinished, "apt"), debs, apt));
    // Only a complete release gets the name.
    rmSync(out, { recursive: true, force: true });
    renameSync(unfinished, out);
  } finally {
    rmSync(unfinished, { recursive: true, force: true });
  }
  console.log(`The release is in ${out}${signingKey ? "" : ". It is not signed: no --minisign-key"}`);
}

/** Undefined without `--apt`. Throws when the repository could not be signed. */
async function aptOptions(values: Values): Promise<AptOptions | undefined> {
  if (!values.apt) return undefined;
  const key = values["apt-key"];
  if (!key) throw new Error(`An apt repository has to be signed: name a key of gpg with --apt-key.\n${usage}`);
  await checkGpgKey(key);
  const days = values["apt-valid-days"];
  if (days !== undefined && !/^[1-9]\d{0,3}$/.test(days))
    throw new Error(`--apt-valid-days is ${days}, and has to be a number of days from 1 to 9999.`);
  const validDays = days === undefined ? null : Number(days);
  return { key, date: releaseTime(), previous: values["apt-from"] ?? null, validDays };
}

/** The directory is deleted, so it must be empty, or a release. */
function refuseOthersFiles(out: string): void {
  const names = existsSync(out) ? readdirSync(out) : [];
  if (names.length > 0 && !names.includes("SHA256SUMS"))
    throw new Error(`${out} contains other files than a release. Name another directory with --out.`);
}

/** `built`: an executable that is published as it is. */
type Making = { wish: Wish; kind: BuildKind; folder: string; built: string | undefined };

async function writeArtifacts(arch: Arch, { wish, kind, folder, built }: Making): Promise<void> {
  // Without its compiler the executable would lack the sandbox launcher, and keep debugging symbols.
  if (arch !== process.arch) await installBuildPackages(targetFor(arch).packages);
  const names = artifactNames(arch);
  const executable = join(folder, names.executable);
  const tools = await step("ffmpeg", () => chooseTools(arch, wish));
  if (built) copyFileSync(built, executable);
  else await buildExecutable(arch, executable, { tools, kind });
  writeFileSync(join(folder, names.sbom), await sbom(arch, tools, await sha256(executable)));
  await step("ffmpeg package", () => writeFfmpegPackage(arch, tools, folder));
  const level = gzipLevel(kind);
  await step("Debian package", () => writeDeb(arch, executable, join(folder, names.deb), { level }));
  await step("image", () => writeImage(arch, executable, join(folder, names.image), level));
}

main().catch((error: unknown) => {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 1;
});
