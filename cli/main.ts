import { CommanderError } from "commander";
import { UserError } from "#lib/base";
import { createProgram } from "./program.ts";
import { reportError } from "./report-error.ts";
import { extractSettings, hasFlag } from "./settings.ts";

/** 0 success, 1 failure, 2 wrong usage; errors as one sentence on stderr, as JSON with `--json`. */
async function main(): Promise<void> {
  const args = process.argv.slice(2);
  try {
    const { rest, ...given } = extractSettings(args);
    await createProgram(given).parseAsync(rest, { from: "user" });
  } catch (error) {
    process.exitCode = reportError(await worded(error), hasFlag(args, "--json"));
  }
}

/** Any statement may find that the database is damaged. */
async function worded(error: unknown): Promise<unknown> {
  if (error instanceof CommanderError || error instanceof UserError) return error;
  const { DAMAGED_ADVICE, isDamaged } = await import("#storage/db/failures.ts");
  if (!isDamaged(error)) return error;
  return new UserError(`The database is damaged: ${DAMAGED_ADVICE}. \`vodbox admin doctor\` shows details.`);
}

// A closed pipe (`vodbox … | head`) is not a failure.
process.stdout.on("error", (error: NodeJS.ErrnoException) => {
  if (error.code === "EPIPE") process.exit(0);
});

void main();
