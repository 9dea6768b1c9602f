import {
  chmodSync,
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
import type { BuildKind } from "./build/kind.ts";
import { paths } from "./build/paths.ts";
import { step } from "./build/report.ts";
import { chooseTools } from "./build/tools.ts";
import { packClients } from "./clients/pack.ts";
import { writePythonPackages } from "./clients/python/package.ts";
import type { Wish } from "./ffmpeg/build.ts";
import { STAGES } from "./ffmpeg/components.ts";
import { targetFor } from "./ffmpeg/recipe.ts";
import { installBuildPackages } from "./ffmpeg/source.ts";
import { writeChart } from "./release/chart.ts";
import { sha256, writeChecksums } from "./release/checksums.ts";
import { writeDeb } from "./release/deb/deb.ts";
import { writeImage } from "./release/image/image.ts";
import { installer } from "./release/installer.ts";
import { artifactNames } from "./release/names.ts";
import { writeProvenance } from "./release/provenance.ts";
import { sbom } from "./release/sbom.ts";
import { publicKeyOf, signFiles } from "./release/sign.ts";

const usage = `usage: npm run release -- [--arch x64|arm64] [--out DIR] [--stage STAGE] [--base-url URL] [--minisign-key FILE]
  --arch ARCH     only for this processor; default: both
  --out DIR       directory of the result, which is replaced; default: release
  --stage STAGE   of ffmpeg: complete, the default, or another one, for tests of a release that take no hour
  --base-url URL  where the files will be published; the installer's default
  --minisign-key FILE  signs every file with this secret key, whose signatures the installer verifies`;

async function main(): Promise<void> {
  const options = {
    arch: { type: "string" },
    out: { type: "string" },
    stage: { type: "string" },
    "base-url": { type: "string" },
    "minisign-key": { type: "string" },
  } as const;
  const { values } = parseArgs({ options });
  const arches = (["x64", "arm64"] as const).filter((arch) => values.arch === undefined || values.arch === arch);
  if (arches.length === 0) throw new Error(`There is no vodbox for ${values.arch}.\n${usage}`);
  const wish = values.stage ?? "complete";
  const stage = STAGES.find((one) => one === wish);
  if (!stage) throw new Error(`ffmpeg has no stage ${wish}.\n${usage}`);
  const out = resolve(values.out ?? join(paths.root, "release"));
  refuseOthersFiles(out);
  const signingKey = values["minisign-key"];
  // A key that cannot be read is reported before the minutes that a release takes.
  const publicKey = signingKey ? publicKeyOf(signingKey) : "";
  const baseUrl = values["base-url"] ?? "";
  const unfinished = `${out}.${process.pid}`;
  try {
    mkdirSync(unfinished, { recursive: true });
    // What tests of a release need is not compressed as small as possible, which takes a minute.
    const kind: BuildKind = stage === "complete" ? "release" : "tests";
    await step("assets", () => writeAssets(kind));
    for (const arch of arches) await writeArtifacts(arch, { wish: stage, kind, folder: unfinished });
    await step("Python client", () => writePythonPackages(unfinished));
    await step("npm packages", () => packClients(unfinished));
    const script = join(unfinished, "install.sh");
    writeFileSync(script, installer(baseUrl, publicKey));
    chmodSync(script, 0o755);
    for (const name of globSync("*.*", { cwd: join(paths.root, "deploy") }))
      cpSync(join(paths.root, "deploy", name), join(unfinished, name));
    await step("Helm chart", () => writeChart(unfinished));
    await writeProvenance(unfinished, { architectures: arches, stage, base_url: baseUrl });
    await writeChecksums(unfinished);
    if (signingKey) signFiles(unfinished, signingKey);
    // Only a complete release gets the name.
    rmSync(out, { recursive: true, force: true });
    renameSync(unfinished, out);
  } finally {
    rmSync(unfinished, { recursive: true, force: true });
  }
  console.log(`The release is in ${out}${signingKey ? "" : ". It is not signed: no --minisign-key"}`);
}

/** The directory is deleted, so it must be empty, or a release. */
function refuseOthersFiles(out: string): void {
  const names = existsSync(out) ? readdirSync(out) : [];
  if (names.length > 0 && !names.includes("SHA256SUMS"))
    throw new Error(`${out} contains other files than a release. Name another directory with --out.`);
}

type Making = { wish: Wish; kind: BuildKind; folder: string };

async function writeArtifacts(arch: Arch, { wish, kind, folder }: Making): Promise<void> {
  // Without its compiler the executable would lack the sandbox launcher, and keep debugging symbols.
  if (arch !== process.arch) await installBuildPackages(targetFor(arch).packages);
  const names = artifactNames(arch);
  const executable = join(folder, names.executable);
  const tools = await step("ffmpeg", () => chooseTools(arch, wish));
  await buildExecutable(arch, executable, { tools, kind });
  writeFileSync(join(folder, names.sbom), await sbom(arch, tools, await sha256(executable)));
  await step("Debian package", () => writeDeb(arch, executable, join(folder, names.deb)));
  await step("image", () => writeImage(arch, executable, join(folder, names.image)));
}

main().catch((error: unknown) => {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 1;
});
