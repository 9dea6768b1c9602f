import type { Command } from "commander";
import type { Result } from "#clients/typescript/types.ts";
import { UserError } from "#lib/base";
import { hasSecrets, loadSecrets, TOKEN_NAMES, type TokenName } from "#platform/config/secrets.ts";
import { connect } from "../connect.ts";
import { line, printJson, printRecord } from "../print.ts";
import { settingsOf, wantsJson } from "../settings.ts";
import type { CommandContext } from "./command-context.ts";

function named(name: string): TokenName {
  if (TOKEN_NAMES.includes(name as TokenName)) return name as TokenName;
  throw new UserError(`There is no token ${name}; tokens are ${TOKEN_NAMES.join(", ")}.`, 2);
}

/** Read from the settings and the data directory: access to these includes the tokens. */
export async function show(name: string | undefined, command: Command): Promise<void> {
  const config = settingsOf(command);
  const chosen = name === undefined ? null : named(name);
  if (!hasSecrets(config)) await (await connect(config, { isLocal: true })).close();
  const secrets = loadSecrets(config);
  const tokens = Object.fromEntries(TOKEN_NAMES.map((each) => [each, secrets[`${each}_token`]]));
  if (chosen === null) return printRecord(tokens, wantsJson(command));
  if (wantsJson(command)) return printJson({ name: chosen, token: tokens[chosen] });
  line(tokens[chosen] as string);
}

export async function rotate({ admin, json, args }: CommandContext): Promise<void> {
  const answer = await admin.call<Result<"rotateToken">>("POST", `/api/v1/admin/tokens/${named(args[0] ?? "")}/rotate`);
  if (json) printJson(answer);
  else line(answer.token);
}
