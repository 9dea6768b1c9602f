import { readFileSync } from "node:fs";
import { join } from "node:path";

/** The URL in the documents; the tests substitute the real one. */
export const WRITTEN_ADDRESS = "127.0.0.1:8080";

/** One or more commands, and the output shown below them. */
export type Example = { line: number; command: string; output: { kind: "json" | "text"; text: string } | null };

export const readDocument = (path: string) => readFileSync(join(import.meta.dirname, "../../..", path), "utf8");

/** The `sh` blocks of a document, each with the next `json` or `text` block before another `sh` block. */
export function examplesIn(markdown: string): Example[] {
  const examples: Example[] = [];
  for (const match of markdown.matchAll(/^```(\w+)\n([\s\S]*?)^```$/gm)) {
    const [, kind = "", text = ""] = match;
    const last = examples.at(-1);
    if (kind === "sh") {
      const line = markdown.slice(0, match.index).split("\n").length + 1;
      examples.push({ line, command: text, output: null });
    } else if ((kind === "json" || kind === "text") && last && !last.output) last.output = { kind, text };
  }
  return examples;
}

const TIME = /\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{3}Z/;
/** Values that differ between runs, as written and as a pattern. */
const CHANGING: readonly [RegExp, string][] = [
  [TIME, TIME.source],
  [/\bvid_\w+/, "vid_\\w+"],
  [/\breq_[\w-]+/, "req_[\\w-]+"],
  [/\/sources\/\w+/, "/sources/\\w+"],
  [/…/, "[\\s\\S]*"],
];
/** They depend on which encoder made the example's video. */
const MEASURED = /bytes|bandwidth/;

const escaped = (text: string) => text.replaceAll(/[\\^$.*+?()[\]{}|]/g, "\\$&");

function patternOf(written: string): RegExp {
  const any = new RegExp(CHANGING.map(([pattern]) => `(${pattern.source})`).join("|"), "g");
  let source = "";
  let at = 0;
  for (const match of written.matchAll(any)) {
    const [, found] = CHANGING[match.slice(1).findIndex((group) => group !== undefined)] as [RegExp, string];
    source += escaped(written.slice(at, match.index)) + found;
    at = match.index + match[0].length;
  }
  return new RegExp(`^${source}${escaped(written.slice(at))}$`);
}

/** Differences between the document and the response. `"…": "…"` in an object represents further fields. */
export function differences(written: any, answered: any, path = "$"): string[] {
  if (typeof written === "string" && typeof answered === "string")
    return patternOf(written).test(answered) ? [] : [`${path}: ${written} is written, ${answered} is answered`];
  if (typeof written === "number" && typeof answered === "number" && MEASURED.test(path)) return [];
  if (typeof written !== "object" || written === null || typeof answered !== "object" || answered === null)
    return written === answered
      ? []
      : [`${path}: ${JSON.stringify(written)} is written, ${JSON.stringify(answered)} is answered`];
  const { "…": more, ...fields } = written;
  const unknown = more === undefined ? Object.keys(answered).filter((key) => !(key in fields)) : [];
  return [
    ...unknown.map((key) => `${path}.${key} is answered and not written`),
    ...Object.entries(fields).flatMap(([key, value]) => differences(value, answered[key], `${path}.${key}`)),
  ];
}
