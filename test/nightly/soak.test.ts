import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import type { Result } from "#scripts/bench/result.ts";

const root = join(import.meta.dirname, "../..");
const SECONDS = 900;

/** The results of a benchmark of a server under load for `SECONDS`. */
async function soaked(name: string): Promise<Result[]> {
  const child = spawn(process.execPath, [join(root, "scripts/bench/main.ts"), name], {
    cwd: root,
    stdio: "inherit",
    env: { ...process.env, VODBOX_SOAK_SECONDS: String(SECONDS) },
  });
  expect(await once(child, "exit")).toEqual([0, null]);
  return JSON.parse(readFileSync(join(root, "bench-results/latest.json"), "utf8")).results;
}

const TIMEOUT_MS = 3 * SECONDS * 1000;

test.for(["live-soak", "soak"])(
  "%s: no failed request, no fault of a playlist, and no growing memory",
  {
    timeout: TIMEOUT_MS,
  },
  async (name) => {
    const results = await soaked(name);
    expect(results.length).toBeGreaterThan(0);
    expect(results.filter(({ met }) => !met)).toEqual([]);
  },
);
