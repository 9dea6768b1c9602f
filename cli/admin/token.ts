import type { Command } from "commander";
import { hasSecrets, loadSecrets } from "../../src/config/secrets.ts";
import { UserError } from "../../src/lib/errors.ts";
import { connect } from "../connect.ts";
import { line, printJson, printRecord } from "../print.ts";
import { settingsOf, wantsJson } from "../settings.ts";
import type { CommandContext } from "./command-context.ts";

const NAMES = ["admin", "worker", "live"] as const;
type Name = (typeof NAMES)[number];

function named(name: string): Name {
  if (NAMES.includes(name as Name)) return name as Name;
  throw new UserError(`There is no token ${name}; there are ${NAMES.join(", ")}.`, 2);
}

/** Read from the settings and the data directory: whoever may read those may see them. */
export async function show(name: string | undefined, command: Command): Promise<void> {
  const config = settingsOf(command);
  const chosen = name === undefined ? null : named(name);
  // Secrets without a database look like a lost database. Opening the data creates both.
  if (!hasSecrets(config)) await (await connect(config)).close();
  const secrets = loadSecrets(config);
  const tokens = Object.fromEntries(NAMES.map((each) => [each, secrets[`${each}_token`]]));
  if (chosen === null) return printRecord(tokens, wantsJson(command));
  if (wantsJson(command)) return printJson({ name: chosen, token: tokens[chosen] });
  line(tokens[chosen] as string);
}

export async function rotate({ admin, json, args }: CommandContext): Promise<void> {
  const answer = await admin.call<{ name: string; token: string }>(
    "POST",
    `/api/v1/admin/tokens/${named(args[0] ?? "")}/rotate`,
  );
  if (json) printJson(answer);
  else line(answer.token);
}
