import { existsSync } from "node:fs";
import { join } from "node:path";
import type { Config, Origin } from "./load.ts";
import { SETTINGS, type Setting, type SettingName } from "./settings.ts";

/** A setting as people may see it. `value` is null when it is not set. */
export type ShownSetting = { setting: SettingName; value: unknown; origin: Origin; about: string };

const MASK = "********";

/** All settings with their sources. Secrets are masked, because people paste this into issues. */
export const shownSettings = (config: Config): ShownSetting[] =>
  (Object.entries(SETTINGS) as [SettingName, Setting][]).map(([name, setting]) => {
    // Tokens are usually not set, but generated once and stored.
    const isKept = config[name] === undefined && existsSync(join(config.data_dir, "secrets", name));
    const value = isKept ? "kept" : config[name];
    return {
      setting: name,
      value: value === undefined ? null : setting.secret ? MASK : withoutPassword(value),
      origin: isKept ? "data directory" : config.origins[name],
      about: setting.about,
    };
  });

/** The value in one line. */
export const settingText = (value: unknown): string | null =>
  value === null ? null : typeof value === "object" ? JSON.stringify(value) : String(value);

/** A URL may contain one, as user:password@ or, with libSQL, in its query. */
function withoutPassword(value: unknown): unknown {
  if (typeof value !== "string" || !URL.canParse(value)) return value;
  const url = new URL(value);
  const hasToken = url.searchParams.has("authToken");
  if (url.password === "" && !hasToken) return value;
  if (url.password !== "") url.password = MASK;
  if (hasToken) url.searchParams.set("authToken", MASK);
  return url.href;
}
