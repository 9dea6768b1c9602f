import { execFile } from "node:child_process";
import { symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { type Flaky, judge } from "#scripts/test/flaky.ts";
import { emptyFolder } from "#test/support/folder.ts";

const root = join(import.meta.dirname, "../../..");
const CONFIG = `export default { test: { name: "some", include: ["*.test.ts"] } };`;
const FILES = {
  passes: `import { test } from "vitest"; test("passes", () => {});`,
  // Passes when it was run before.
  flaky: `import { existsSync, writeFileSync } from "node:fs";
    import { expect, test } from "vitest";
    const mark = new URL("./mark", import.meta.url);
    test("is slow sometimes", () => {
      const isSecond = existsSync(mark);
      writeFileSync(mark, "");
      expect(isSecond, "too slow").toBe(true);
    });`,
  // Throws next to its test when it is run first.
  stray: `import { existsSync, writeFileSync } from "node:fs";
    import { setImmediate as nextIteration } from "node:timers/promises";
    import { test } from "vitest";
    const mark = new URL("./stray", import.meta.url);
    test("passes next to it", async () => {
      if (!existsSync(mark)) queueMicrotask(() => { throw new Error("nothing catches this"); });
      writeFileSync(mark, "");
      await nextIteration();
    });`,
  broken: `import { expect, test } from "vitest"; test("is broken", () => expect(1).toBe(2));`,
};

/** `scripts/test/run.ts` over these files, in a project of their own. */
function runOf(...names: (keyof typeof FILES)[]): Promise<{ code: number; output: string }> {
  const folder = emptyFolder();
  symlinkSync(join(root, "node_modules"), join(folder, "node_modules"));
  writeFileSync(join(folder, "vitest.config.mjs"), CONFIG);
  for (const name of names) writeFileSync(join(folder, `${name}.test.ts`), FILES[name]);
  const env = Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith("VITEST")));
  const args = [join(root, "scripts/test/run.ts"), `--root=${folder}`, "--project", "some", "test.ts"];
  return new Promise((resolve) =>
    execFile(process.execPath, args, { env, cwd: root }, (error, stdout, stderr) =>
      resolve({ code: error ? Number(error.code) : 0, output: stdout + stderr }),
    ),
  );
}

test("a file that fails and passes alone is reported, and the run passes", async () => {
  const { code, output } = await runOf("passes", "flaky");
  expect(output).toMatch(/^FLAKY flaky\.test\.ts: is slow sometimes: .*too slow/m);
  expect(output).not.toMatch(/^FAILED/m);
  expect(code).toBe(0);
});

test("an error that nothing caught belongs to the file that ran, which is tried again", async () => {
  const { code, output } = await runOf("passes", "stray");
  expect(output).toMatch(/^FLAKY stray\.test\.ts: nothing catches this/m);
  expect(code).toBe(0);
});

test("a file that also fails alone fails the run", async () => {
  const { code, output } = await runOf("passes", "broken");
  expect(output).toMatch(/^FAILED broken\.test\.ts \(some\), also alone/m);
  expect(code).toBe(1);
});

test("a run without failures passes", async () => {
  expect((await runOf("passes")).code).toBe(0);
});

const flaky = (file: string): Flaky => ({ file, project: "fast", failure: "too slow" });

test.for([
  { now: [], before: [], reasons: [] },
  { now: ["a"], before: ["b"], reasons: [] },
  { now: ["a", "b", "c"], before: [], reasons: [] },
  { now: ["a", "b", "c", "d"], before: [], reasons: [/^4 files are flaky/] },
  { now: ["a", "b"], before: ["b"], reasons: [/^b was flaky in the last run too/] },
])("$now flaky after $before", ({ now, before, reasons }) => {
  const verdict = judge(now.map(flaky), before.map(flaky));
  expect(verdict).toHaveLength(reasons.length);
  for (const [index, reason] of reasons.entries()) expect(verdict[index]).toMatch(reason);
});
