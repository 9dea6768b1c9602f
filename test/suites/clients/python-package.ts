import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { pythonPackageNames, writePythonPackages } from "#scripts/clients/python/package.ts";
import { newFolder } from "#test/support/folder.ts";

/** Debian's, whose packages the client requires; PATH may have another. */
export const SYSTEM_PYTHON = "/usr/bin/python3";

export type Installed = { folder: string; python: string; wheel: string; sdist: string };

/** The built packages, and the wheel installed by pip into an environment of its own. The caller deletes `folder`. */
export async function installedPackage(): Promise<Installed> {
  const folder = newFolder();
  await writePythonPackages(folder);
  const wheel = join(folder, pythonPackageNames.wheel);
  const sdist = join(folder, pythonPackageNames.sdist);
  execFileSync(SYSTEM_PYTHON, ["-m", "venv", "--system-site-packages", join(folder, "venv")]);
  const python = join(folder, "venv/bin/python");
  // Also checks that Debian's versions of the requirements suffice.
  execFileSync(python, ["-m", "pip", "install", "--quiet", "--no-index", `${wheel}[signing]`]);
  return { folder, python, wheel, sdist };
}
