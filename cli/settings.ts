import { type Command, Option } from "commander";
import { type Config, loadConfig } from "../src/config/load.ts";
import { SETTINGS, type Setting, type SettingName } from "../src/config/settings.ts";

/** Shown in the help of every command; the others are there all the same. */
const COMMON: readonly string[] = ["data_dir"];

const flagOf = (name: string) => (name === "data_dir" ? "--data" : `--${name.replaceAll("_", "-")}`);

/**
 * Every setting that is no secret as a flag, before or after the subcommand. Secrets stay out: arguments are seen by
 * everyone on the machine.
 */
export function addSettings(command: Command, shown: readonly SettingName[] = []): Command {
  for (const [name, setting] of Object.entries<Setting>(SETTINGS)) {
    const value = name.endsWith("_dir") ? "DIR" : name.endsWith("url") ? "URL" : "VALUE";
    const option = new Option(
      `${flagOf(name)} <${value}>`,
      `${setting.about}${setting.fallback ? ` (default ${setting.fallback})` : ""}`,
    );
    if (setting.secret || command.options.some((known) => known.long === option.long)) continue;
    option.attributeName = () => `setting_${name}`;
    command.addOption(COMMON.includes(name) || shown.includes(name as SettingName) ? option : option.hideHelp());
  }
  const config = new Option(
    "--config <FILE>",
    "settings file (default vodbox.toml or vodbox.json, where there is one)",
  ).hideHelp(shown.length === 0);
  config.attributeName = () => "setting_config";
  command.addOption(config);
  return command.option("--json", "print JSON");
}

/** The settings of this run, from the flags of `command` and of those above it. */
export function settingsOf(command: Command): Config {
  const flags: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(command.optsWithGlobals())) {
    if (name.startsWith("setting_")) flags[name.slice("setting_".length)] = value;
  }
  return loadConfig({ flags });
}

export const wantsJson = (command: Command): boolean => command.optsWithGlobals().json === true;
