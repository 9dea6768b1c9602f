import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { envName, SETTINGS, type Setting } from "../src/config/settings.ts";
import { paths } from "./build/paths.ts";

/** `node scripts/settings-table.ts` writes the table of settings into this document anew, from the settings themselves. */
export const document = join(paths.root, "docs/operations.md");
const BEGIN = "<!-- settings: written by scripts/settings-table.ts -->\n";
const END = "<!-- end of settings -->\n";

/** Read and checked, but for features that are yet to come. */
export const WITHOUT_EFFECT: readonly string[] = [
  "env",
  ...Object.keys(SETTINGS).filter((name) => /^(payments|rate_limit_billing)/.test(name)),
];

const row = ([name, { fallback, about, secret }]: [string, Setting]) =>
  `| \`${envName(name)}\` | ${fallback ? `\`${fallback}\`` : ""} | ${about.replaceAll("<", "&lt;")}${secret ? "; a secret" : ""} |`;

function table(): string {
  const all = Object.entries<Setting>(SETTINGS);
  const [later, now] = [true, false].map((wanted) =>
    all.filter(([name]) => WITHOUT_EFFECT.includes(name) === wanted).map(row),
  ) as [string[], string[]];
  const head = "| Variable | Default | |\n|---|---|---|";
  return [head, ...now, "", "These are read and checked, and have **no effect yet**:", "", head, ...later, ""].join(
    "\n",
  );
}

/** The document as it should be. */
export function currentDocument(): string {
  const text = readFileSync(document, "utf8");
  const [from, to] = [text.indexOf(BEGIN), text.indexOf(END)];
  if (from === -1 || to < from) throw new Error(`${document} has lost the marks around its settings`);
  return `${text.slice(0, from + BEGIN.length)}\n${table()}\n${text.slice(to)}`;
}

if (import.meta.main) writeFileSync(document, currentDocument());
