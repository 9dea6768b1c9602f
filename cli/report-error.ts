import { CommanderError } from "commander";
import { UserError, withoutStatement } from "#lib/base";

/** One line, with its full stop. */
export const sentence = (text: string) =>
  text
    .trim()
    .replaceAll(/\s*\n\s*/g, " ")
    .replace(/[^.?!)]$/, "$&.");

/** An error on stderr: one sentence, or with `json` one value `{"error": {"message", "code"?}}`. */
export function printError(message: string, { json, code }: { json: boolean; code?: string | undefined }): void {
  const text = sentence(message);
  process.stderr.write(
    json ? `${JSON.stringify({ error: { message: text, ...(code && { code }) } })}\n` : `vodbox: ${text}\n`,
  );
}

/** Prints what commander has not printed yet. Returns the exit code: 1 for a failure, 2 for wrong usage. */
export function reportError(error: unknown, json: boolean): number {
  // Commander's help is an error with exit code 0.
  if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : 2;
  if (error instanceof UserError) {
    printError(error.message, { json, code: error.code });
    return error.exitCode;
  }
  const reason = error instanceof Error ? withoutStatement(error) : null;
  printError(reason?.message ?? String(error), { json });
  if (process.env.VODBOX_LOG_LEVEL === "debug" && reason) process.stderr.write(`${reason.stack}\n`);
  return 1;
}
