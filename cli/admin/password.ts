import { createInterface } from "node:readline/promises";
import { Writable } from "node:stream";
import { text } from "node:stream/consumers";
import { UserError } from "#lib/base";

/** Reads standard input (without its final line break), else prompts twice without echo. Throws UserError. */
export async function readPassword(fromStdin: boolean): Promise<string> {
  if (fromStdin) return (await text(process.stdin)).replace(/\r?\n$/, "");
  if (!process.stdin.isTTY)
    throw new UserError("There is no terminal for the password prompt; use --password-stdin.", 2);
  const first = await prompt("Password: ");
  if ((await prompt("Again: ")) !== first) throw new UserError("The two passwords differ; nothing was changed.");
  return first;
}

async function prompt(question: string): Promise<string> {
  process.stderr.write(question);
  // readline's echo is discarded.
  const unseen = new Writable({ write: (_chunk, _encoding, done) => done() });
  const reader = createInterface({ input: process.stdin, output: unseen, terminal: true });
  const interrupted = new Promise<never>((_, reject) =>
    reader.once("SIGINT", () => reject(new UserError("Interrupted; nothing was changed."))),
  );
  try {
    return await Promise.race([reader.question(""), interrupted]);
  } finally {
    reader.close();
    process.stderr.write("\n");
  }
}
