import { UserError } from "#lib/base";
import type { Config } from "./load.ts";
import { envName, type SettingName } from "./settings.ts";

/** The values of the text settings `names`. Throws one UserError, `<user> needs …`, that names all missing ones. */
export function requiredSettings<const Names extends readonly SettingName[]>(
  config: Config,
  user: string,
  names: Names,
): { [Index in keyof Names]: string } {
  const missing = names.filter((name) => config[name] === undefined);
  if (missing.length > 0) throw new UserError(`${user} needs ${missing.map(envName).join(", ")}.`, 2);
  return names.map((name) => config[name]) as { [Index in keyof Names]: string };
}
