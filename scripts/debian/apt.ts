import { mkdirSync, mkdtempSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { isInstalled, run } from "../build/run.ts";

const sourcesFolder = "/etc/apt/sources.list.d";

/**
 * The system's own package sources in our own directory, for source packages (`deb-src`) or binary ones (`deb`): the
 * system's configuration is not changed.
 */
function writeSourceLists(folder: string, type: "deb" | "deb-src"): void {
  const lists = ["/etc/apt/sources.list", ...readdirSync(sourcesFolder).map((name) => join(sourcesFolder, name))];
  const other = type === "deb" ? "deb-src" : "deb";
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
        ? text.replace(/^Types:.*$/gm, `Types: ${type}`)
        : text.replace(new RegExp(`^${type} .*$`, "gm"), "").replace(new RegExp(`^${other} `, "gm"), `${type} `);
    writeFileSync(join(folder, `${index}.${extension}`), changed);
  }
}

/**
 * Options that make apt use its own lists, below `workFolder`, which it has just updated. It needs no root, and neither
 * the system's lists nor its packages are changed. `more` are further options. Throws an Error that says why packages
 * cannot be downloaded here.
 */
export async function aptOptions(workFolder: string, type: "deb" | "deb-src", more: string[] = []): Promise<string[]> {
  if (!(await isInstalled("apt-get"))) throw new Error("this system has no apt-get to download packages with");
  const lists = mkdtempSync(join(workFolder, "lists-"));
  const state = join(lists, "state");
  mkdirSync(join(state, "partial"), { recursive: true });
  writeSourceLists(lists, type);
  const options = [
    ...["-o", "Dir::Etc::sourcelist=/dev/null", "-o", `Dir::Etc::sourceparts=${lists}`],
    ...["-o", `Dir::State::lists=${state}`, "-o", "APT::Sandbox::User=root"],
    ...["-o", `Dir::Cache::pkgcache=`, "-o", `Dir::Cache::srcpkgcache=`],
    ...["-o", "Acquire::Retries=2", "-o", "Acquire::http::Timeout=20", "-o", "Acquire::https::Timeout=20"],
    ...more,
  ];
  await run("apt-get", ["-qq", ...options, "update"]);
  return options;
}
