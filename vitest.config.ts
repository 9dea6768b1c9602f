import { defineConfig } from "vitest/config";
import { TIERS } from "./test/tiers.ts";

const SHARED = ["executable", "shared-s3", "migrated-file", "fixtures"].map((name) => `test/support/${name}.ts`);
const common = {
  environment: "node" as const,
  testTimeout: 120_000,
  hookTimeout: 120_000,
  // The default of one second is too short for a busy machine.
  expect: { poll: { timeout: 20_000 } },
  globalSetup: SHARED,
  // The first as the executable is started; scripts/build/executable.ts says why. The second, because V8 enlarges a young
  // generation by the load of the machine: in a small one, what a test has in progress survives and seems to be kept.
  execArgv: ["--no-wasm-generic-wrapper", "--min-semi-space-size=16"],
};

export default defineConfig({
  test: {
    // One more than the processors of the machine that this was measured on: a quarter of the time tests only wait.
    maxWorkers: 3,
    projects: [
      { test: { ...common, name: "fast", ...TIERS.fast } },
      {
        test: {
          ...common,
          name: "full",
          ...TIERS.full,
          // Servers, workers, encoders and browsers start in each of them: three at once keep players and publishers from
          // running in real time. They run after the other tiers, because those may use more processes.
          maxWorkers: 2,
          sequence: { groupOrder: 1 },
        },
      },
      {
        // The whole interface once more, over a real remote database.
        test: {
          ...common,
          name: "remote database",
          ...TIERS["remote database"],
          globalSetup: [...SHARED, "test/support/migrated-sqld.ts"],
          env: { VODBOX_TEST_DATABASE: "sqld" },
        },
      },
    ],
  },
});
