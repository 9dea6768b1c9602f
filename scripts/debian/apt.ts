import { mkdirSync, mkdtempSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { isInstalled, run } from "../build/run.ts";

const sourcesFolder = "/etc/apt/sources.list.d";

export type PackageKind = "deb" | "deb-src";

/**
 * The system's own package sources in our own directory, for source packages (`deb-src`), binary ones (`deb`) or both: the
 * system's configuration is not changed.
 */
function writeSourceLists(folder: string, kinds: readonly PackageKind[]): void {
  const lists = ["/etc/apt/sources.list", ...readdirSync(sourcesFolder).map((name) => join(sourcesFolder, name))];
  for (const [index, path] of lists.entries()) {
    const extension = path.endsWith(".sources") ? "sources" : path.endsWith(".list") ? "list" : null;
    if (!extension) continue;
    let text: string;
    try {
      text = readFileSync(path, "utf8");
    } catch {
      continue;
    }
    const changed =
      extension === "sources"
        ? text.replace(/^Types:.*$/gm, `Types: ${kinds.join(" ")}`)
        : // A repository is usually listed for both kinds: its lines would otherwise repeat.
          [...new Set([...text.matchAll(/^deb(?:-src)? (.*)$/gm)].map(([, rest]) => rest))]
            .flatMap((rest) => kinds.map((kind) => `${kind} ${rest}\n`))
            .join("");
    writeFileSync(join(folder, `${index}.${extension}`), changed);
  }
}

/**
 * Options that make apt use its own lists, below `workFolder`, which it has just updated. It needs no root, and neither
 * the system's lists nor its packages are changed. `more` are further options. Throws an Error that says why packages
 * cannot be downloaded here.
 */
export async function aptOptions(
  workFolder: string,
  kinds: readonly PackageKind[],
  more: string[] = [],
): Promise<string[]> {
  if (!(await isInstalled("apt-get"))) throw new Error("this system has no apt-get to download packages with");
  const lists = mkdtempSync(join(workFolder, "lists-"));
  const state = join(lists, "state");
  mkdirSync(join(state, "partial"), { recursive: true });
  writeSourceLists(lists, kinds);
  const options = [
    ...["-o", "Dir::Etc::sourcelist=/dev/null", "-o", `Dir::Etc::sourceparts=${lists}`],
    ...["-o", `Dir::State::lists=${state}`, "-o", "APT::Sandbox::User=root"],
    ...["-o", `Dir::Cache::pkgcache=`, "-o", `Dir::Cache::srcpkgcache=`],
    // Translations of descriptions are half of the download.
    ...["-o", "Acquire::Languages=none"],
    ...["-o", "Acquire::Retries=2", "-o", "Acquire::http::Timeout=20", "-o", "Acquire::https::Timeout=20"],
    ...more,
  ];
  await run("apt-get", ["-qq", ...options, "update"]);
  return options;
}
