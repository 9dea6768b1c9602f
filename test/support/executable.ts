import { existsSync, globSync, statSync } from "node:fs";
import { fileURLToPath } from "node:url";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));

/** The built executable, which scripts/test.sh creates before the tests run. */
export const EXECUTABLE = `${ROOT}dist/vodbox`;

/**
 * The executable starts in a sixth of the time that the sources take, and a run of all tests starts hundreds of
 * processes. Only when it is newer than the sources: after a change the sources are tested.
 */
function isNewest(): boolean {
  return (
    existsSync(EXECUTABLE) &&
    globSync(["cli/**", "src/**", "storage/**", "build/assets/*"], { cwd: ROOT }).every(
      (path) => statSync(`${ROOT}${path}`).mtimeMs < statSync(EXECUTABLE).mtimeMs,
    )
  );
}

/** Whether commands are run by the executable. */
export const isUsed = (): boolean => (process.env.VODBOX_TEST_EXECUTABLE ??= isNewest() ? "1" : "0") === "1";

/** Decided before all tests: those of the release write `build/assets` again, and would make all later ones slow. */
export default function setup(): void {
  isUsed();
}
