import { envName, SETTINGS, type Setting } from "#platform/config/settings.ts";

const row = ([name, { fallback, about, secret }]: [string, Setting]) =>
  `- \`${envName(name)}\`${fallback ? ` (\`${fallback}\`)` : ""}: ${about.replaceAll("<", "&lt;")}${secret ? "; a secret" : ""}`;

/** A list of all settings, each with its default and what it is for. */
export const settingsTable = (): string => [...Object.entries<Setting>(SETTINGS).map(row), ""].join("\n");
