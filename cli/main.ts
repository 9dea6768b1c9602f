import { CommanderError } from "commander";
import { UserError } from "../src/lib/errors.ts";
import { createProgram } from "./program.ts";
import { takeSettings } from "./settings.ts";

/** 0 done, 1 failed, 2 wrong usage; what went wrong in one sentence on stderr. */
async function main(): Promise<void> {
  try {
    const { rest, ...given } = takeSettings(process.argv.slice(2));
    await createProgram(given).parseAsync(rest, { from: "user" });
  } catch (error) {
    process.exitCode = exitCodeOf(await worded(error));
  }
}

/** One line, with its full stop. */
const sentence = (text: string) =>
  text
    .trim()
    .replaceAll(/\s*\n\s*/g, " ")
    .replace(/[^.?!]$/, "$&.");

/** A database that is damaged may show it at any statement. */
async function worded(error: unknown): Promise<unknown> {
  if (error instanceof CommanderError || error instanceof UserError) return error;
  const { DAMAGED_ADVICE, isDamaged } = await import("../storage/db/failures.ts");
  if (!isDamaged(error)) return error;
  return new UserError(`The database is damaged: ${DAMAGED_ADVICE}. \`vodbox admin doctor\` says what it finds.`);
}

function exitCodeOf(error: unknown): number {
  // Commander has said what it has to say; its help and version are no errors.
  if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : 2;
  if (error instanceof UserError) {
    process.stderr.write(`vodbox: ${sentence(error.message)}\n`);
    return error.exitCode;
  }
  process.stderr.write(`vodbox: ${sentence(error instanceof Error ? error.message : String(error))}\n`);
  if (process.env.VODBOX_LOG_LEVEL === "debug" && error instanceof Error) process.stderr.write(`${error.stack}\n`);
  return 1;
}

// A reader that goes away (`vodbox … | head`) is no failure.
process.stdout.on("error", (error: NodeJS.ErrnoException) => {
  if (error.code === "EPIPE") process.exit(0);
});

void main();
