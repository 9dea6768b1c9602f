import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";

const root = join(import.meta.dirname, "../../..");
/** The exported name behind a doc comment, and the lines of its `@example`. */
const EXAMPLE =
  /\/\*\*(?:(?!\*\/)[\s\S])*?@example\n((?: \*(?!\/).*\n)+) \*\/\nexport (?:async )?(?:function\*?|const|class) (\w+)/g;
const IMPORT = /^import \{ (.+) \} from "(.+)";$/;
const VALUE = /^(.+?);? \/\/ => (.+)$/;

type Example = { name: string; lines: string[] };

/** Each example of a library, without the marks of the comment. */
function examplesOf(library: string): Example[] {
  const texts = globSync(`src/lib/${library}/**/*.ts`, { cwd: root }).map((file) =>
    readFileSync(join(root, file), "utf8"),
  );
  const examples = texts.flatMap((text) =>
    [...text.matchAll(EXAMPLE)].map(([, comment = "", name = ""]) => ({
      name,
      lines: comment.split("\n").flatMap((line) => (line.trim() === "" ? [] : [line.replace(/^ \* ?/, "")])),
    })),
  );
  // An example in another form would not be run.
  expect(examples.length).toBe(texts.join("").split(" * @example\n").length - 1);
  return examples;
}

/** Runs an example, in which all that the library exports is in scope, and compares the values of its lines `… // => value`. */
async function run({ lines }: Example, exported: Record<string, unknown>): Promise<number> {
  const scope: Record<string, unknown> = { ...exported };
  const body: string[] = [];
  let compared = 0;
  for (const line of lines) {
    const [, names, from] = IMPORT.exec(line) ?? [];
    const [, expression, value] = VALUE.exec(line) ?? [];
    if (names !== undefined && from !== undefined) {
      const module = await import(from);
      for (const each of names.split(", ")) scope[each] = module[each];
    } else if (expression !== undefined) {
      compared++;
      body.push(`compare(await (${expression}), ${value}, ${JSON.stringify(line)});`);
    } else body.push(line);
  }
  const AsyncFunction = (async () => {}).constructor as FunctionConstructor;
  const compare = (value: unknown, expected: unknown, line: string) => expect(value, line).toEqual(expected);
  const code = `"use strict"; {\n${body.join("\n")}\n}`;
  await new AsyncFunction("compare", ...Object.keys(scope), code)(compare, ...Object.values(scope));
  return compared;
}

const libraries = globSync("src/lib/*/index.ts", { cwd: root }).map((path) => path.split("/")[2] as string);

describe.each(libraries.sort())("the library %s", (library) => {
  const examples = examplesOf(library);

  test("has examples of what a newcomer calls first", async () => {
    const exported = Object.keys(await import(`../../../src/lib/${library}/index.ts`));
    expect(examples.length).toBeGreaterThanOrEqual(Math.min(2, exported.length));
    expect(examples.map(({ name }) => name).filter((name) => !exported.includes(name))).toEqual([]);
  });

  test.each(examples)("the example of $name has the documented results", async (example) => {
    expect(await run(example, await import(`../../../src/lib/${library}/index.ts`))).toBeGreaterThan(0);
  });
});
