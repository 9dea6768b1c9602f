import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { TextlintKernelDescriptor, type TextlintResult } from "@textlint/kernel";
import * as markdown from "@textlint/textlint-plugin-markdown";
import { createLinter, loadLinterFormatter } from "textlint";
import terminology from "textlint-rule-terminology";
import { identifierFaults } from "./identifiers.ts";
import { sentences } from "./sentences.ts";
import { termsOf } from "./terms.ts";
import { typescriptPlugin } from "./typescript-plugin.ts";

/** The export of a CommonJS module that was compiled from an ES module: its default export is a nested field. */
const commonJs = (module: object): unknown => {
  const { default: value } = module as { default: { default?: unknown } };
  return value.default ?? value;
};

/**
 * `npm run lint:terms [PATH…]`: reports terms in comments, strings, documents and identifiers that have a standard synonym, and
 * sentences without a subject.
 */
const descriptorOf = (terms: ReturnType<typeof termsOf>) =>
  new TextlintKernelDescriptor({
    rules: [
      { ruleId: "terminology", rule: terminology as never, options: { defaultTerms: false, terms } },
      { ruleId: "sentences", rule: sentences },
    ],
    plugins: [
      { pluginId: "markdown", plugin: commonJs(markdown) as never },
      { pluginId: "typescript", plugin: typescriptPlugin },
    ],
    filterRules: [],
  });
/** The rules, and their tests, have the words that they refuse. */
const OWN = /^scripts\/lint-terms\/|\/identifiers\.test\.ts$/;
const given = process.argv.slice(2);
const paths = given.length > 0 ? given : ["*.md", "*.ts", "*.tsx"];
const files = execFileSync("git", ["ls-files", "--", ...paths], { encoding: "utf8" })
  .split("\n")
  .filter((path) => /\.(md|tsx?)$/.test(path) && !OWN.test(path));
/** Files with the same discouraged terms are read together. */
const groups = Map.groupBy(files, (path) => JSON.stringify(termsOf(path)));
const results: TextlintResult[] = [];
for (const [terms, paths] of groups)
  results.push(...(await createLinter({ descriptor: descriptorOf(JSON.parse(terms)) }).lintFiles(paths)));
const formatter = await loadLinterFormatter({ formatterName: "unix" });
const report = formatter.format(results);
if (report.trim() !== "") console.log(report);
const identifiers = files
  .filter((path) => /\.tsx?$/.test(path))
  .flatMap((path) => identifierFaults(path, readFileSync(path, "utf8")));
if (identifiers.length > 0) console.log(identifiers.join("\n"));
process.exitCode = identifiers.length > 0 || results.some(({ messages }) => messages.length > 0) ? 1 : 0;
