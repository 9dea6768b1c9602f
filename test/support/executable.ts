import { existsSync, globSync, statSync } from "node:fs";
import { fileURLToPath } from "node:url";
import type { TestProject } from "vitest/node";

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

/** Set for the processes of all test files. */
const DECISION = "VODBOX_TEST_EXECUTABLE";

/** Whether commands are run by the executable. Outside of a test run it is decided at each start. */
export const isUsed = (process.env[DECISION] ?? String(isNewest())) === "true";

/** Decided before all tests: those of the release write `build/assets` again, and would make all later ones slow. */
export default function setup(project: TestProject): void {
  const decide = () => {
    process.env[DECISION] = String(isNewest());
  };
  decide();
  // Sources may have changed.
  project.onTestsRerun(decide);
}
