import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join, relative } from "node:path";
import { beforeAll, expect, test } from "vitest";
import { isNightly } from "#test/support/amount.ts";

const root = join(import.meta.dirname, "../../..");

/** Literals without a proof of linear time, and why they are safe: their input, and its maximum length. */
const ALLOWED: Record<string, string> = {
  "src/platform/outbound/payments/paypal-signature.ts /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g":
    "too slow to decide; a certificate of PayPal's own host, and no part can begin inside another",
  "cli/report-error.ts /\\s*\\n\\s*/g": "what the operator typed",
};

/** Patterns that are built at run time: their number by file, and why they are safe. */
const COMPOSED: Record<string, [count: number, reason: string]> = {
  "src/platform/http/openapi-examples.ts": [1, "patterns of our own schemas, on our own examples"],
  "src/lib/subtitles/align/words.ts": [
    1,
    "one character class with a sequel, and a flag that recheck does not know; timed as syncTexts",
  ],
  "src/lib/subtitles/align/realign-words.ts": [
    1,
    "character classes after which nothing must follow, so nothing is tried twice; timed as editedWords",
  ],
  "src/lib/subtitles/spaceless.ts": [1, "one character class, without a sequel"],
  "src/web/console/pages/asset/cue-edits.ts": [1, "the words that a person searches, escaped"],
  "src/lib/search/fold.ts": [
    2,
    "one character class with a sequel, and flags that recheck does not know; timed as searchSections",
  ],
  "src/lib/subtitles/vtt/loose-timing.ts": [1, "anchored, and no part can begin another; timed as vtt"],
  "src/lib/subtitles/vtt/settings.ts": [2, "anchored, of bounded length; timed as vtt"],
  "src/lib/subtitles/vtt/srt-markup.ts": [
    1,
    "no part can begin inside another, on at most 10,000 characters; timed as subtitleFile",
  ],
  "src/lib/subtitles/vtt/srt.ts": [3, "anchored, on at most 300 characters or once for a file; timed as subtitleFile"],
  "src/features/transcoding/added-audio/verify.ts": [2, "of bounded length, on at most 2000 characters"],
  "storage/objects/s3/xml.ts": [1, "answers of the operator's own object store"],
};

type Literal = { file: string; literal: string };
const literals: Literal[] = [];
const composed: Record<string, number> = {};

beforeAll(async () => {
  const { default: ts } = await import("typescript-5");
  const files = ["src", "cli", "storage"]
    .flatMap((folder) => readdirSync(join(root, folder), { recursive: true, withFileTypes: true }))
    .filter((entry) => entry.isFile() && entry.name.endsWith(".ts"))
    .map((entry) => join(entry.parentPath, entry.name));
  for (const path of files) {
    const file = relative(root, path);
    const visit = (node: import("typescript-5").Node): void => {
      if (ts.isRegularExpressionLiteral(node)) literals.push({ file, literal: node.text });
      const isNew = ts.isNewExpression(node) || ts.isCallExpression(node);
      if (isNew && node.expression.getText() === "RegExp") composed[file] = (composed[file] ?? 0) + 1;
      ts.forEachChild(node, visit);
    };
    visit(ts.createSourceFile(path, readFileSync(path, "utf8"), ts.ScriptTarget.Latest, true));
  }
});

/**
 * Literals of which a run has proved that they take linear time, one a line, as JSON, because each proof takes long. Another one
 * is proved in each run until it is here; the nightly tier proves all. WRITE_PROVED=1 writes the file.
 */
const PROVED = join(import.meta.dirname, "linear-regexes.txt");
const proved = isNightly || process.env.WRITE_PROVED ? [] : readFileSync(PROVED, "utf8").trim().split("\n");

test("every regular expression takes linear time, or is in the table with a reason", async () => {
  // The other backends are native programs for some machines, with the same results.
  process.env.RECHECK_BACKEND = "pure";
  const { checkSync } = await import("recheck");
  expect(literals.length).toBeGreaterThan(200);
  const isLinear = (literal: string): boolean => {
    const end = literal.lastIndexOf("/");
    const { status } = checkSync(literal.slice(1, end), literal.slice(end + 1), { timeout: 120_000 });
    return status === "safe";
  };
  // The checker detects patterns that have been fixed here.
  expect(isLinear('/([A-Z0-9-]+)=("[^"]*"|[^",]*)(?:,|$)/g')).toBe(false);
  expect(isLinear(String.raw`/^(\S+)#xywh=\S+\r?$/gm`)).toBe(false);
  const known = new Map<string, boolean>(proved.map((line) => [JSON.parse(line), true]));
  const slow: string[] = [];
  const used = new Set<string>();
  for (const { file, literal } of literals) {
    const name = `${file} ${literal}`;
    if (Object.hasOwn(ALLOWED, name)) {
      used.add(name);
      continue;
    }
    const linear = known.get(literal) ?? isLinear(literal);
    known.set(literal, linear);
    if (!linear) slow.push(name);
  }
  expect(slow).toEqual([]);
  const lines = [...new Set(literals.map(({ literal }) => literal))].filter((literal) => known.get(literal));
  if (process.env.WRITE_PROVED)
    writeFileSync(
      PROVED,
      `${lines
        .map((line) => JSON.stringify(line))
        .sort()
        .join("\n")}\n`,
    );
  expect([...used].sort()).toEqual(Object.keys(ALLOWED).sort());
});

test("every composed pattern is in the table with a reason", () => {
  const counts = Object.fromEntries(Object.entries(COMPOSED).map(([file, [count]]) => [file, count]));
  expect(composed).toEqual(counts);
});
