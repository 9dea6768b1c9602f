import { envName, SETTINGS, type Setting } from "#platform/config/settings.ts";

const row = ([name, { fallback, about, secret }]: [string, Setting]) =>
  `| \`${envName(name)}\` | ${fallback ? `\`${fallback}\`` : ""} | ${about.replaceAll("<", "&lt;")}${secret ? "; a secret" : ""} |`;

export const settingsTable = (): string =>
  ["| Variable | Default | |\n|---|---|---|", ...Object.entries<Setting>(SETTINGS).map(row), ""].join("\n");
