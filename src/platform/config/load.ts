import { existsSync, readFileSync } from "node:fs";
import { resolve } from "node:path";
import { parse as parseToml } from "smol-toml";
import * as v from "valibot";
import { UserError } from "#lib/base";
import { envName, SETTINGS, type Setting, type SettingName } from "./settings.ts";

type Values = {
  [K in SettingName]: (typeof SETTINGS)[K] extends { fallback: string }
    ? v.InferOutput<(typeof SETTINGS)[K]["schema"]>
    : v.InferOutput<(typeof SETTINGS)[K]["schema"]> | undefined;
};
/** Where values come from. */
export const ORIGINS = ["flag", "environment", "file", "default", "data directory"] as const;
export type Origin = (typeof ORIGINS)[number];

/** All settings of this run, frozen. `origins` names the source of each value. */
export type Config = Readonly<Values> & {
  readonly origins: Readonly<Record<SettingName, Origin>>;
  readonly file: string | null;
  readonly warnings: readonly string[];
};

export type ConfigSources = { flags?: Record<string, unknown>; env?: NodeJS.ProcessEnv; cwd?: string };

const names = Object.keys(SETTINGS) as SettingName[];
const describe = (origin: Origin, name: SettingName, file: string | null) =>
  origin === "flag"
    ? `--${name === "data_dir" ? "data" : name.replaceAll("_", "-")}`
    : origin === "environment"
      ? envName(name)
      : `${name} in ${file}`;

/**
 * Precedence: flag, environment, file, default. Throws one UserError with all faults, so that an operator can correct
 * them in one attempt.
 */
export function loadConfig({ flags = {}, env = process.env, cwd = process.cwd() }: ConfigSources = {}): Config {
  const faults: string[] = [];
  const warnings: string[] = [];
  const file = findFile(flags.config ?? env.VODBOX_CONFIG, cwd);
  const fromFile = file ? readFile(file, faults) : {};
  const values: Record<string, unknown> = {};
  const origins = {} as Record<SettingName, Origin>;
  for (const name of names) {
    const setting: Setting = SETTINGS[name];
    const candidates: [Origin, unknown][] = [
      ["flag", flags[name]],
      // Shells and unit files express "not set" as an empty variable.
      ["environment", env[envName(name)] || undefined],
      ["file", fromFile[name]],
    ];
    const [origin, raw] =
      candidates.find(([, value]) => value !== undefined) ?? (["default", setting.fallback] as const);
    origins[name] = origin;
    if (raw === undefined) continue;
    const parsed = parse(setting, raw, cwd);
    if (parsed.success) values[name] = parsed.output;
    else
      faults.push(
        `${describe(origin, name, file)} ${parsed.message}${setting.secret || setting.read ? "" : ` (it is ${JSON.stringify(raw)})`}`,
      );
  }
  for (const variable of Object.keys(env)) {
    if (variable.startsWith("VODBOX_") && !KNOWN_VARIABLES.has(variable))
      warnings.push(`${variable} is not a vodbox setting and is ignored`);
  }
  if (faults.length > 0) throw new UserError(`Invalid settings: ${faults.join("; ")}.`, 2);
  if (typeof values.data_dir === "string") values.data_dir = resolve(cwd, values.data_dir);
  return Object.freeze({ ...(values as Values), origins: Object.freeze(origins), file, warnings });
}

function parse({ schema, read }: Setting, raw: unknown, cwd: string) {
  try {
    const parsed = v.safeParse(schema, read && typeof raw === "string" ? read(raw, cwd) : raw);
    return parsed.success ? parsed : { success: false as const, message: parsed.issues[0].message };
  } catch (error) {
    return { success: false as const, message: unreadable(error) };
  }
}

/** Node's message for a missing file names a system call, which does not help an operator. */
function unreadable(error: unknown): string {
  const { code, message } = error as NodeJS.ErrnoException;
  if (code === "ENOENT") return "names a file that does not exist; check the path";
  return `cannot be read: ${code === undefined ? message.split("\n")[0] : `${code}; look at its owner and mode`}`;
}

/** Variables that other parts read directly: the client commands, the executable's cache, the build, the tests. */
const KNOWN_VARIABLES = new Set([
  ...names.map(envName),
  "VODBOX_CONFIG",
  "VODBOX_SERVER",
  "VODBOX_KEY",
  "VODBOX_CACHE_DIR",
  "VODBOX_BUILD_FFMPEG",
  "VODBOX_BUILD_FFPROBE",
]);

function findFile(named: unknown, cwd: string): string | null {
  if (typeof named === "string" && named !== "") return resolve(cwd, named);
  return ["vodbox.toml", "vodbox.json"].map((name) => resolve(cwd, name)).find((path) => existsSync(path)) ?? null;
}

/** Flat keys: tables are joined with `_`, so `[rate_limit] uploads` is `rate_limit_uploads`. */
function readFile(path: string, faults: string[]): Record<string, unknown> {
  let parsed: unknown;
  try {
    if (!existsSync(path)) {
      faults.push(`the configuration file ${path} does not exist`);
      return {};
    }
    const source = readFileSync(path, "utf8");
    parsed = path.endsWith(".json") ? JSON.parse(source) : parseToml(source);
  } catch (error) {
    faults.push(`${path} ${unreadable(error)}`);
    return {};
  }
  if (typeof parsed !== "object" || parsed === null || Array.isArray(parsed)) {
    faults.push(`${path} must contain a table of settings`);
    return {};
  }
  const flat: Record<string, unknown> = {};
  const walk = (table: object, prefix: string) => {
    for (const [key, value] of Object.entries(table)) {
      const isTable = typeof value === "object" && value !== null && !Array.isArray(value);
      const setting = (SETTINGS as Record<string, Setting>)[`${prefix}${key}`];
      if (isTable && !setting?.read) walk(value, `${prefix}${key}_`);
      else if (`${prefix}${key}` in SETTINGS) flat[`${prefix}${key}`] = value;
      else faults.push(`${prefix}${key} in ${path} is not a vodbox setting`);
    }
  };
  walk(parsed, "");
  return flat;
}
