import type { Command } from "commander";
import { UserError } from "#lib/base";
import { type Config, loadConfig } from "#platform/config/load.ts";
import { SETTINGS, type Setting, type SettingName } from "#platform/config/settings.ts";

export type ParsedFlags = { flags: Record<string, string>; json: boolean };
const GIVEN = "given settings";

const flagOf = (name: string) => (name === "data_dir" ? "--data" : `--${name.replaceAll("_", "-")}`);
/** Every setting that is not a secret, because arguments are visible to all users of the machine. */
const NAMES = new Map([
  ["--config", "config"],
  ...Object.entries<Setting>(SETTINGS)
    .filter(([, setting]) => !setting.secret)
    .map(([name]) => [flagOf(name), name] as const),
]);

/**
 * Extracts the settings' flags and `--json` from the arguments, before or after the subcommand. Not by the parser:
 * forty options on each of its commands took a tenth of every start.
 */
export function extractSettings(args: readonly string[]): ParsedFlags & { rest: string[] } {
  const flags: Record<string, string> = {};
  const rest: string[] = [];
  let json = false;
  for (let at = 0; at < args.length; at++) {
    const argument = args[at] as string;
    if (argument === "--") {
      rest.push(...args.slice(at));
      break;
    }
    const [flag = "", ...inline] = argument.split("=");
    const name = NAMES.get(flag);
    if (argument === "--json") json = true;
    // Node's styleText follows it, and so do the libraries.
    else if (argument === "--no-color") process.env.NO_COLOR = "1";
    else if (name === undefined) rest.push(argument);
    else {
      const value = inline.length > 0 ? inline.join("=") : args[++at];
      if (value === undefined) throw new UserError(`${flag} needs a value.`, 2);
      flags[name] = value;
    }
  }
  return { flags, json, rest };
}

/** Whether a flag is given, before `--`. */
export const hasFlag = (args: readonly string[], flag: string): boolean =>
  args.slice(0, args.includes("--") ? args.indexOf("--") : args.length).includes(flag);

/** The flags of all settings, for suggestions. */
export const settingFlags = (): string[] => [...NAMES.keys()];

/** Makes the extracted values available to every command. */
export const storeFlags = (program: Command, { flags, json }: ParsedFlags) =>
  program.setOptionValue(GIVEN, { flags, json });

const flagsOf = (command: Command): ParsedFlags =>
  (command.optsWithGlobals()[GIVEN] as ParsedFlags | undefined) ?? { flags: {}, json: false };

/** The settings of this run. Throws a UserError with all faults. */
export const settingsOf = (command: Command): Config => loadConfig({ flags: flagsOf(command).flags });
export const wantsJson = (command: Command): boolean => flagsOf(command).json;

/** Help lines for the settings that a command uses. */
export function settingsHelp(names: readonly SettingName[]): string {
  const lines = names.map((name): [string, string] => {
    const { about, fallback }: Setting = SETTINGS[name];
    return [`${flagOf(name)} <value>`, `${about}${fallback ? ` (default ${fallback})` : ""}`];
  });
  const all: [string, string][] = [
    ...lines,
    ["--config <file>", "configuration file (default: vodbox.toml or vodbox.json)"],
  ];
  const width = Math.max(...all.map(([flag]) => flag.length)) + 4;
  const rows = all.flatMap(([flag, about]) =>
    wrap(about, COLUMNS - width).map((part, row) => `${(row ? "" : `  ${flag}`).padEnd(width)}${part}`),
  );
  return `\nSettings, before or after the command (vodbox admin config lists them all):\n${rows.join("\n")}`;
}

const COLUMNS = 80;

function wrap(text: string, width: number): string[] {
  const lines = [""];
  for (const word of text.split(" ")) {
    const last = lines.at(-1) as string;
    if (last !== "" && last.length + 1 + word.length > width) lines.push(word);
    else lines[lines.length - 1] = last === "" ? word : `${last} ${word}`;
  }
  return lines;
}
