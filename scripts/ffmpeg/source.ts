import { mkdirSync, mkdtempSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { isInstalled, run } from "../build/run.ts";
import { buildPackages } from "./recipe.ts";

/** A source package of the distribution, with its security fixes: fetched through apt, which checks its signature. */
export type AptSource = {
  version: string;
  /** Unpacks the source into a new folder below `folder` and returns its path. */
  fetchInto(folder: string): Promise<string>;
};
/** Finds the newest version of source package `name`. Throws an Error when the distribution has none. */
export type AptSources = (name: string) => Promise<AptSource>;

const sourcesFolder = "/etc/apt/sources.list.d";

/**
 * The system's own list of package sources, asked for sources instead of binaries, in a folder of ours: nothing of
 * the system's configuration is changed.
 */
function writeSourceLists(folder: string): void {
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
    const asked =
      extension === "sources"
        ? text.replace(/^Types:.*$/gm, "Types: deb-src")
        : text.replace(/^deb-src .*$/gm, "").replace(/^deb /gm, "deb-src ");
    writeFileSync(join(folder, `${index}.${extension}`), asked);
  }
}

/** Throws an Error that says why sources cannot be fetched here. */
export async function aptSources(workFolder: string): Promise<AptSources> {
  if (!(await isInstalled("apt-get"))) throw new Error("this system has no apt-get to fetch ffmpeg's source with");
  const lists = mkdtempSync(join(workFolder, "lists-"));
  const state = join(lists, "state");
  mkdirSync(join(state, "partial"), { recursive: true });
  writeSourceLists(lists);
  const options = [
    "-qq",
    ...["-o", "Dir::Etc::sourcelist=/dev/null", "-o", `Dir::Etc::sourceparts=${lists}`],
    // Lists of our own too, so that it needs no root and the system's are not replaced.
    ...["-o", `Dir::State::lists=${state}`, "-o", "APT::Sandbox::User=root"],
    ...["-o", `Dir::Cache::pkgcache=`, "-o", `Dir::Cache::srcpkgcache=`],
    ...["-o", "Acquire::Retries=2", "-o", "Acquire::http::Timeout=20", "-o", "Acquire::https::Timeout=20"],
  ];
  await run("apt-get", [...options, "update"]);
  return async (name) => {
    const shown = await run("apt-cache", [...options.slice(1), "showsrc", "--only-source", name]);
    const version = await newest([...shown.matchAll(/^Version: (.+)$/gm)].map((match) => match[1] as string));
    if (!version) throw new Error(`the package sources of this system carry no source of ${name}`);
    return {
      version,
      async fetchInto(parent) {
        const folder = join(parent, name);
        mkdirSync(folder);
        const fetch = ["source", "--only-source", "--download-only", `${name}=${version}`];
        await run("apt-get", [...options, ...fetch], { cwd: folder });
        const dsc = readdirSync(folder).find((file) => file.endsWith(".dsc"));
        if (!dsc) throw new Error(`apt-get fetched no source package of ${name}`);
        // apt has checked the hashes against the signed list; the maintainers' own keys need not be installed for that.
        await run("dpkg-source", ["--no-check", "-x", dsc, "source"], { cwd: folder });
        return join(folder, "source");
      },
    };
  };
}

async function newest(versions: string[]): Promise<string | null> {
  let best: string | null = null;
  for (const version of versions) {
    if (!best) best = version;
    else if (await isNewer(version, best)) best = version;
  }
  return best;
}

const isNewer = (version: string, than: string) =>
  run("dpkg", ["--compare-versions", version, "gt", than]).then(
    () => true,
    () => false,
  );

/** Installs what the compilation needs and is missing; without the rights for that it throws what is missing. */
export async function installBuildPackages(): Promise<void> {
  const missing: string[] = [];
  for (const name of buildPackages) {
    const status = await run("dpkg-query", ["-W", "-f", `\${Status}`, name]).catch(() => "");
    if (!status.endsWith(" installed")) missing.push(name);
  }
  if (missing.length === 0) return;
  if (process.geteuid?.() !== 0) {
    throw new Error(`packages are missing; as root: apt-get install --no-install-recommends ${missing.join(" ")}`);
  }
  const env = { ...process.env, DEBIAN_FRONTEND: "noninteractive" };
  const install = ["-qq", "-o", "DPkg::Lock::Timeout=300", "install", "-y", "--no-install-recommends", ...missing];
  // The lists may be old or, in a container, absent.
  await run("apt-get", install, { env }).catch(async () => {
    await run("apt-get", ["-qq", "update"]);
    await run("apt-get", install, { env });
  });
}
