import { createHash } from "node:crypto";
import { copyFileSync, cpSync, existsSync, globSync, mkdirSync, statSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { gzipSync } from "node:zlib";
import { run } from "#scripts/build/run.ts";
import { sha256 } from "../checksums.ts";
import { exportGpgKey, type GpgKey, signRelease } from "./gpg.ts";

const DAY_MS = 86_400_000;
const POOL = "pool/main/v/vodbox";
const SUITE = "dists/stable";
const COMPONENT = "main";
/** The public key, which operators put where `Signed-By` says. */
export const KEYRING = "vodbox-archive-keyring.asc";

export type AptOptions = {
  key: GpgKey;
  /** Time of the repository. apt ignores one that is older than what it has. */
  date: Date;
  /** An earlier repository, whose packages stay installable; null for none. */
  previous?: string | null;
  /** After so many days apt refuses the repository until it is signed again; null for never. */
  validDays?: number | null;
};

/**
 * Writes an apt repository with the packages `debs` to the new directory `folder`, in the layout of
 * https://wiki.debian.org/DebianRepository/Format. All but the signatures depends on the arguments only. Needs dpkg-deb and gpg.
 *
 * Without `validDays` it has no Valid-Until: nothing would sign it again between releases that are months apart, and it would
 * stop working. With one, a mirror cannot withhold updates for longer.
 */
export async function writeAptRepository(folder: string, debs: string[], options: AptOptions): Promise<void> {
  const { key, date, previous = null, validDays = null } = options;
  mkdirSync(join(folder, POOL), { recursive: true });
  if (previous !== null) keepPrevious(previous, folder);
  for (const deb of debs) copyFileSync(deb, join(folder, POOL, basename(deb)));
  const stanzas = new Map<string, string[]>();
  for (const path of globSync(`${POOL}/*.deb`, { cwd: folder }).sort()) {
    const { architecture, text } = await stanza(folder, path);
    stanzas.set(architecture, [...(stanzas.get(architecture) ?? []), text]);
  }
  const architectures = [...stanzas.keys()].sort();
  const indexes = architectures.flatMap((arch) => writeIndexes(folder, arch, stanzas.get(arch) ?? []));
  const fields = {
    Origin: "vodbox",
    Label: "vodbox",
    Suite: "stable",
    Codename: "stable",
    Architectures: architectures.join(" "),
    Components: COMPONENT,
    Description: "vodbox video platform",
    Date: date.toUTCString(),
    ...(validDays !== null && { "Valid-Until": new Date(date.getTime() + validDays * DAY_MS).toUTCString() }),
    "Acquire-By-Hash": "yes",
  };
  const header = Object.entries(fields).map(([name, value]) => `${name}: ${value}\n`);
  const sums = indexes.map(({ path, bytes, hash }) => ` ${hash} ${bytes} ${path}\n`);
  const suite = join(folder, SUITE);
  writeFileSync(join(suite, "Release"), `${header.join("")}SHA256:\n${sums.join("")}`);
  await signRelease(key, join(suite, "Release"), join(suite, "InRelease"), join(suite, "Release.gpg"));
  await exportGpgKey(key, join(folder, KEYRING));
}

/** Its packages, and the indexes by hash: a client that has read the older Release fetches those. */
function keepPrevious(previous: string, folder: string): void {
  if (!existsSync(join(previous, SUITE, "Release"))) throw new Error(`${previous} is no apt repository of vodbox.`);
  for (const path of globSync([`${POOL}/*.deb`, `${SUITE}/**/by-hash/SHA256/*`], { cwd: previous }))
    cpSync(join(previous, path), join(folder, path));
}

/** The entry of a package in the index: its control file, and where it is. */
async function stanza(folder: string, path: string): Promise<{ architecture: string; text: string }> {
  const file = join(folder, path);
  const control = await run("dpkg-deb", ["--field", file]);
  const architecture = /^Architecture: (\S+)$/m.exec(control)?.[1];
  if (!architecture) throw new Error(`${file} names no architecture.`);
  const text = `${control.trim()}\nFilename: ${path}\nSize: ${statSync(file).size}\nSHA256: ${await sha256(file)}\n`;
  return { architecture, text };
}

type Index = { path: string; bytes: number; hash: string };

/** `Packages` of an architecture, plain and compressed, each also under its hash; their paths are relative to the suite. */
function writeIndexes(folder: string, architecture: string, stanzas: string[]): Index[] {
  const parent = `${COMPONENT}/binary-${architecture}`;
  const target = join(folder, SUITE, parent);
  mkdirSync(join(target, "by-hash/SHA256"), { recursive: true });
  const plain = Buffer.from(stanzas.join("\n"));
  const files = { Packages: plain, "Packages.gz": gzipSync(plain, { level: 9 }) };
  return Object.entries(files).map(([name, content]) => {
    const hash = createHash("sha256").update(content).digest("hex");
    writeFileSync(join(target, name), content);
    writeFileSync(join(target, "by-hash/SHA256", hash), content);
    return { path: `${parent}/${name}`, bytes: content.length, hash };
  });
}
