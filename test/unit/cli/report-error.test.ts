import { DrizzleQueryError } from "drizzle-orm";
import { afterEach, expect, test, vi } from "vitest";
import { reportError } from "#cli/report-error.ts";

afterEach(() => {
  vi.restoreAllMocks();
  vi.unstubAllEnvs();
});

test.each([
  ["as a sentence", { json: false }, "vodbox: database is locked.\n"],
  ["as JSON", { json: true }, '{"error":{"message":"database is locked."}}\n'],
])("a failed statement is reported with its reason and without its parameters, %s", (_, { json }, expected) => {
  const written: string[] = [];
  vi.spyOn(process.stderr, "write").mockImplementation((text) => written.push(String(text)) > 0);
  const error = new DrizzleQueryError("SELECT ?", ["hash of a token"], new Error("database is locked"));
  expect(reportError(error, json)).toBe(1);
  expect(written.join("")).toBe(expected);
  vi.stubEnv("VODBOX_LOG_LEVEL", "debug");
  reportError(error, json);
  expect(written.join("")).toContain("at ");
  expect(written.join("")).not.toContain("hash of a token");
});
