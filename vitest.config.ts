import { defineConfig } from "vitest/config";

const SHARED = "test/support/shared-s3.ts";
const common = {
  environment: "node" as const,
  testTimeout: 120_000,
  hookTimeout: 120_000,
  // As the executable is started; scripts/build/executable.ts says why.
  execArgv: ["--no-wasm-generic-wrapper"],
};

export default defineConfig({
  test: {
    // Servers, encoders and browsers start in these tests: more files at once than processors only makes them late.
    maxWorkers: 2,
    projects: [
      { test: { ...common, name: "here", include: ["test/**/*.test.ts"], globalSetup: SHARED } },
      {
        // The whole interface once more, over a real remote database.
        test: {
          ...common,
          name: "remote database",
          include: ["test/api/**/*.test.ts"],
          globalSetup: [SHARED, "test/support/migrated-sqld.ts"],
          env: { VODBOX_TEST_DATABASE: "sqld" },
        },
      },
    ],
  },
});
