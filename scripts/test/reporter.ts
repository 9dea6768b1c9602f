import { writeFileSync } from "node:fs";
import { relative } from "node:path";
import type { SerializedError } from "vitest";
import type { Reporter, TestModule } from "vitest/node";

/** The result of one test file in one project. */
export type FileResult = { file: string; project: string; failed: boolean; seconds: number; failure: string | null };
/** `errors` happened outside of any test file. */
export type Results = { files: FileResult[]; errors: string[] };

/** Vitest adds the path of the file that ran when an error was thrown which nothing caught. */
const isDuring =
  ({ moduleId }: TestModule) =>
  ({ VITEST_TEST_PATH: path }: SerializedError) =>
    path === moduleId;

const firstFailure = (module: TestModule, uncaught: readonly SerializedError[]): string | null => {
  const errors: Pick<SerializedError, "message">[] = [...module.errors(), ...uncaught];
  for (const test of module.children.allTests("failed"))
    for (const { message } of test.result().errors ?? []) errors.push({ message: `${test.fullName}: ${message}` });
  return errors[0]?.message ?? null;
};

/** Writes the results of a run as JSON to the file that VODBOX_TEST_RESULTS names, for scripts/test/run.ts. */
export default class ResultsReporter implements Reporter {
  onTestRunEnd(modules: readonly TestModule[], errors: readonly SerializedError[]): void {
    const path = process.env.VODBOX_TEST_RESULTS;
    if (!path) return;
    const results: Results = {
      files: modules.map((module) => {
        const uncaught = errors.filter(isDuring(module));
        const failed = !module.ok() || uncaught.length > 0;
        return {
          file: relative(module.project.config.root, module.moduleId),
          project: module.project.name,
          failed,
          seconds: module.diagnostic().duration / 1000,
          failure: failed ? firstFailure(module, uncaught) : null,
        };
      }),
      errors: errors
        .filter((error) => !modules.some((module) => isDuring(module)(error)))
        .map(({ message }) => message),
    };
    writeFileSync(path, JSON.stringify(results));
  }
}
