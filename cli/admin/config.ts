import { existsSync } from "node:fs";
import { join } from "node:path";
import type { Command } from "commander";
import { SETTINGS, type Setting, type SettingName } from "../../src/config/settings.ts";
import { line, printList } from "../print.ts";
import { settingsOf, wantsJson } from "../settings.ts";

type Row = { setting: string; value: unknown; origin: string; about: string };

const MASK = "********";

/** An address may carry one, as user:password@ or, with libSQL, in its query. */
function withoutPassword(value: unknown): unknown {
  if (typeof value !== "string" || !URL.canParse(value)) return value;
  const url = new URL(value);
  const hasToken = url.searchParams.has("authToken");
  if (url.password === "" && !hasToken) return value;
  if (url.password !== "") url.password = MASK;
  if (hasToken) url.searchParams.set("authToken", MASK);
  return url.href;
}

/** Secrets are masked: this is what people paste into issues. */
export async function show(command: Command): Promise<void> {
  const config = settingsOf(command);
  const rows = (Object.entries(SETTINGS) as [SettingName, Setting][]).map(([name, setting]): Row => {
    // The tokens are mostly not set but made once and kept.
    const isKept = config[name] === undefined && existsSync(join(config.data_dir, "secrets", name));
    const value = isKept ? "kept" : config[name];
    return {
      setting: name,
      value: value === undefined ? null : setting.secret ? MASK : withoutPassword(value),
      origin: isKept ? "data directory" : config.origins[name],
      about: setting.about,
    };
  });
  const plain = (value: unknown) => (value !== null && typeof value === "object" ? JSON.stringify(value) : value);
  printList(
    rows,
    [
      ["SETTING", (row) => row.setting],
      ["VALUE", (row) => plain(row.value)],
      ["FROM", (row) => (row.value === null ? "" : row.origin)],
    ],
    wantsJson(command),
  );
  if (config.file && !wantsJson(command)) line(`\nSettings file: ${config.file}`);
  for (const warning of config.warnings) process.stderr.write(`vodbox: ${warning}\n`);
}
