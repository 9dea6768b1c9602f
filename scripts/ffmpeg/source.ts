import { mkdirSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { run } from "../build/run.ts";
import { aptOptions } from "../debian/apt.ts";

/** A source package of the distribution, with its security fixes: downloaded with apt, which verifies its signature. */
export type AptSource = {
  version: string;
  /** Unpacks the source into a new directory below `folder` and returns its path. */
  fetchInto(folder: string): Promise<string>;
};
/** Finds the newest version of source package `name`. Throws an Error when the distribution has none. */
export type AptSources = (name: string) => Promise<AptSource>;

/** Throws an Error that says why sources cannot be downloaded here. */
export async function aptSources(workFolder: string): Promise<AptSources> {
  return sourcesWith(await aptOptions(workFolder, ["deb-src"]));
}

/** The same with options of apt whose lists include source packages. */
export function sourcesWith(options: string[]): AptSources {
  return async (name) => {
    const shown = await run("apt-cache", [...options, "showsrc", "--only-source", name]);
    const version = await newest([...shown.matchAll(/^Version: (.+)$/gm)].map((match) => match[1] as string));
    if (!version) throw new Error(`the package sources of this system carry no source of ${name}`);
    return {
      version,
      async fetchInto(parent) {
        const folder = join(parent, name);
        mkdirSync(folder);
        const fetch = ["source", "--only-source", "--download-only", `${name}=${version}`];
        await run("apt-get", ["-qq", ...options, ...fetch], { cwd: folder });
        const dsc = readdirSync(folder).find((file) => file.endsWith(".dsc"));
        if (!dsc) throw new Error(`apt-get fetched no source package of ${name}`);
        // apt has checked the hashes against the signed list; the maintainers' own keys need not be installed.
        await run("dpkg-source", ["--no-check", "-x", dsc, "source"], { cwd: folder });
        return join(folder, "source");
      },
    };
  };
}

/** The distribution's suffix of a source version: that of `7:5.1.9-0+deb12u1` is `0+deb12u1`. */
export const revisionOf = (version: string): string => version.replace(/^\d+:/, "").replace(/^[^-]*-/, "");

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

/** Those of the packages `names` that are not installed. */
export async function missingPackages(names: string[]): Promise<string[]> {
  const missing: string[] = [];
  for (const name of names) {
    const status = await run("dpkg-query", ["-W", "-f", `\${Status}`, name]).catch(() => "");
    if (!status.endsWith(" installed")) missing.push(name);
  }
  return missing;
}

/** Installs those of `names` that are missing; without the rights to do so, throws with their names. */
export async function installBuildPackages(names: string[]): Promise<void> {
  const missing = await missingPackages(names);
  if (missing.length === 0) return;
  if (process.geteuid?.() !== 0) {
    throw new Error(`packages are missing; as root: apt-get install --no-install-recommends ${missing.join(" ")}`);
  }
  const env = { ...process.env, DEBIAN_FRONTEND: "noninteractive" };
  const install = ["-qq", "-o", "DPkg::Lock::Timeout=300", "install", "-y", "--no-install-recommends", ...missing];
  // The lists may be old or, in a container, missing.
  await run("apt-get", install, { env }).catch(async () => {
    await run("apt-get", ["-qq", "update"]);
    await run("apt-get", install, { env });
  });
}
