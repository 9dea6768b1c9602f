import { createInterface } from "node:readline/promises";
import { Writable } from "node:stream";
import { text } from "node:stream/consumers";
import { UserError } from "../../src/lib/errors.ts";

/** From standard input as it stands (without its last line end), else asked for twice, unseen. Throws UserError. */
export async function askPassword(fromStdin: boolean): Promise<string> {
  if (fromStdin) return (await text(process.stdin)).replace(/\r?\n$/, "");
  if (!process.stdin.isTTY)
    throw new UserError("There is no terminal to ask for a password on; pipe it in with --password-stdin.", 2);
  const first = await ask("Password: ");
  if ((await ask("Again: ")) !== first) throw new UserError("The two passwords differ; nothing was changed.");
  return first;
}

async function ask(question: string): Promise<string> {
  process.stderr.write(question);
  // What readline echoes goes nowhere.
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
