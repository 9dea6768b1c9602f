import type { Command } from "commander";
import { settingText, shownSettings } from "#platform/config/shown-settings.ts";
import { line, printList } from "../print.ts";
import { settingsOf, wantsJson } from "../settings.ts";

export async function show(command: Command): Promise<void> {
  const config = settingsOf(command);
  printList(
    shownSettings(config),
    [
      ["SETTING", (row) => row.setting],
      ["VALUE", (row) => settingText(row.value)],
      ["FROM", (row) => (row.value === null ? "" : row.origin)],
    ],
    wantsJson(command),
  );
  if (config.file && !wantsJson(command)) line(`\nConfiguration file: ${config.file}`);
  for (const warning of config.warnings) process.stderr.write(`vodbox: ${warning}\n`);
}
