import { defineConfig } from "vitest/config";

const common = {
  environment: "node" as const,
  testTimeout: 120_000,
  hookTimeout: 120_000,
};

export default defineConfig({
  test: {
    // Servers, encoders and browsers start in these tests: more files at once than processors only makes them late.
    maxWorkers: 2,
    projects: [
      { test: { ...common, name: "here", include: ["test/**/*.test.ts"] } },
      {
        // What rests on transactions and on what others wrote, once more over a real remote database. All of
        // test/api passes so: VODBOX_TEST_DATABASE=sqld vitest run test/api.
        test: {
          ...common,
          name: "remote database",
          include: ["assets", "jobs", "repeats", "uploads", "webhooks"].map((name) => `test/api/${name}.test.ts`),
          env: { VODBOX_TEST_DATABASE: "sqld" },
        },
      },
    ],
  },
});
