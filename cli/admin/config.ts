import type { Command } from "commander";
import type { Result } from "#clients/typescript/types.ts";
import type { Config } from "#platform/config/load.ts";
import { runningServerUrl } from "#platform/config/server-file.ts";
import { settingText, shownSettings } from "#platform/config/shown-settings.ts";
import { adminOf } from "../connect.ts";
import { line, printList } from "../print.ts";
import { settingsOf, wantsJson } from "../settings.ts";

type Shown = Pick<Result<"listSettings">, "file" | "warnings"> & {
  settings: { setting: string; value: unknown; origin: string; about: string }[];
  /** Whose settings these are, in a sentence. */
  of: string;
};

/** The settings of the server that holds the data directory; without one, those with which one would start here. */
export async function show(command: Command): Promise<void> {
  const config = settingsOf(command);
  const { file, settings, warnings, of } = await shownOf(config);
  printList(
    settings,
    [
      ["SETTING", (row) => row.setting],
      ["VALUE", (row) => settingText(row.value)],
      ["FROM", (row) => (row.value === null ? "" : row.origin)],
    ],
    wantsJson(command),
  );
  if (!wantsJson(command)) {
    if (file) line(`\nConfiguration file: ${file}`);
    line(`\n${of}`);
  }
  for (const warning of warnings) process.stderr.write(`vodbox: ${warning}\n`);
}

async function shownOf(config: Config): Promise<Shown> {
  const address = runningServerUrl(config);
  if (address === null)
    return {
      file: config.file,
      settings: shownSettings(config),
      warnings: [...config.warnings],
      of: `No server runs on ${config.data_dir}: one that starts in this directory and environment has these settings.`,
    };
  const admin = adminOf(config, address);
  try {
    const { settings, ...rest } = await admin.call<Result<"listSettings">>("GET", "/api/v1/admin/settings");
    const typed = settings.map((row) => ({ ...row, value: typedValue(row.value) }));
    return { ...rest, settings: typed, of: `These are the settings of the server at ${address}.` };
  } finally {
    await admin.close();
  }
}

/** The API has values as texts; numbers, lists and truth values are what they are in a local answer. */
function typedValue(text: string | null): unknown {
  if (text === null) return null;
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}
