import { defineConfig } from "vitest/config";
import { V8_SAFETY } from "./scripts/build/v8-flags.ts";
import { isNightly } from "./test/support/amount.ts";
import { alone, remote, shared, type Tier } from "./test/tiers.ts";

const SETUP = ["executable", "shared-s3", "migrated-file", "fixtures"].map((name) => `test/support/${name}.ts`);
const common = {
  environment: "node" as const,
  // Only ends what would never end: the machine may be busy.
  testTimeout: 300_000,
  hookTimeout: 300_000,
  // The default of one second is too short for a busy machine.
  expect: { poll: { timeout: 90_000 } },
  globalSetup: SETUP,
  setupFiles: ["test/support/each-file.ts"],
  // Loading the modules of the server takes most of the time of many files: those that share a process load them once.
  isolate: false,
  // Node.js loads the sources itself, as `npm run dev` does: nothing is transformed, and exports are not read through getters.
  experimental: { viteModuleRunner: false, nodeLoader: false },
  // As the executable is started; the last, because V8 enlarges a young generation by the load of the machine: in a small
  // one, what a test has in progress survives and seems to be kept.
  execArgv: [...V8_SAFETY, "--min-semi-space-size=16"],
};

/**
 * Servers, workers, encoders and browsers start in each of these files, and many wait for media in real time, so two more of
 * them run than there are processors. They run after the fast tier, because their publishers and players need the processors.
 */
const heavy = { maxWorkers: 4, sequence: { groupOrder: 1 } };

/** With its own loader, Node.js promotes 4 KB of each response to the old generation, which a test of the server's garbage would count. */
const MEASURED = { experimental: { viteModuleRunner: true } };

/** The two projects of a tier: files that share processes, and files with one each. */
const tier = (name: Tier, settings = {}) => [
  { test: { ...common, ...settings, name, ...shared(name) } },
  { test: { ...common, ...settings, ...MEASURED, name: `${name} alone`, isolate: true, ...alone(name) } },
];

export default defineConfig({
  test: {
    // One more than the processors of the machine that this was measured on: a quarter of the time tests only wait.
    maxWorkers: 3,
    projects: [
      ...tier("fast"),
      ...tier("full", heavy),
      ...tier("nightly", heavy),
      {
        test: {
          ...common,
          name: "remote database",
          ...remote(isNightly ? "nightly" : "full"),
          globalSetup: [...SETUP, "test/support/migrated-sqld.ts"],
          env: { VODBOX_TEST_DATABASE: "sqld" },
        },
      },
    ],
  },
});
