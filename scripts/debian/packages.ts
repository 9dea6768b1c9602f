import { mkdirSync, mkdtempSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Arch } from "../build/base.ts";
import { run } from "../build/run.ts";
import { aptOptions, type PackageKind } from "./apt.ts";

/** Debian's name of a processor architecture. */
export const debianArch = (arch: Arch) => ({ x64: "amd64", arm64: "arm64" })[arch];

/** A binary package, and the source package that it was built from. */
export type Unpacked = {
  name: string;
  version: string;
  source: string;
  sourceVersion: string;
  /** Its control file, as in the database of installed packages. */
  control: string;
};

/**
 * apt's options for packages of any architecture, independently of what is installed here; `kinds` as for `aptOptions`.
 */
export function archiveOptions(arch: Arch, work: string, kinds: readonly PackageKind[]): Promise<string[]> {
  const status = join(mkdtempSync(join(work, "status-")), "status");
  writeFileSync(status, "");
  const own = ["-o", `APT::Architecture=${debianArch(arch)}`, "-o", `APT::Architectures=${debianArch(arch)}`];
  return aptOptions(work, kinds, [...own, "-o", `Dir::State::status=${status}`]);
}

/**
 * Downloads the newest versions of Debian packages for any architecture and unpacks them into `target`, without their
 * scripts and dependencies. apt verifies their signatures. Needs no root. `options`: of `archiveOptions`, which are
 * created by default.
 */
export async function unpackPackages(
  names: string[],
  arch: Arch,
  { work, target, options }: { work: string; target: string; options?: string[] },
): Promise<Unpacked[]> {
  const folder = mkdtempSync(join(work, "packages-"));
  const used = options ?? (await archiveOptions(arch, work, ["deb"]));
  await run("apt-get", ["-qq", ...used, "download", ...names], { cwd: folder });
  mkdirSync(target, { recursive: true });
  const files = readdirSync(folder).filter((name) => name.endsWith(".deb"));
  const unpacked: Unpacked[] = [];
  for (const file of files.sort()) {
    const path = join(folder, file);
    await run("dpkg-deb", ["--extract", path, target]);
    unpacked.push(await described(path));
  }
  return unpacked;
}

async function described(path: string): Promise<Unpacked> {
  // The last two are those of the source package, also where the field Source is missing.
  const format = `\${Package}\n\${Version}\n\${source:Package}\n\${source:Version}`;
  const shown = await run("dpkg-deb", ["--show", `--showformat=${format}`, path]);
  const [name = "", version = "", source = "", sourceVersion = ""] = shown.split("\n");
  const control = await run("dpkg-deb", ["--field", path]);
  return { name, version, source, sourceVersion, control };
}
