import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { envName, SETTINGS, type Setting } from "../src/config/settings.ts";
import { paths } from "./build/paths.ts";

/** `node scripts/settings-table.ts` writes the table of settings into this document anew, from the settings themselves. */
export const document = join(paths.root, "docs/operations.md");
const BEGIN = "<!-- settings: written by scripts/settings-table.ts -->\n";
const END = "<!-- end of settings -->\n";

const row = ([name, { fallback, about, secret }]: [string, Setting]) =>
  `| \`${envName(name)}\` | ${fallback ? `\`${fallback}\`` : ""} | ${about.replaceAll("<", "&lt;")}${secret ? "; a secret" : ""} |`;

const table = () =>
  ["| Variable | Default | |\n|---|---|---|", ...Object.entries<Setting>(SETTINGS).map(row), ""].join("\n");

/** The document as it should be. */
export function currentDocument(): string {
  const text = readFileSync(document, "utf8");
  const [from, to] = [text.indexOf(BEGIN), text.indexOf(END)];
  if (from === -1 || to < from) throw new Error(`${document} has lost the marks around its settings`);
  return `${text.slice(0, from + BEGIN.length)}\n${table()}\n${text.slice(to)}`;
}

if (import.meta.main) writeFileSync(document, currentDocument());
