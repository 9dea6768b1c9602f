import { createHash, randomUUID } from "node:crypto";
import { existsSync, renameSync } from "node:fs";
import { join } from "node:path";
import { inject } from "vitest";

/**
 * The path of a file that `make` writes once in a test run, for all test files. `key` is everything that its content depends
 * on. The file must not be changed.
 */
export async function fixture(key: unknown, make: (path: string) => Promise<unknown>): Promise<string> {
  const path = join(inject("fixtures"), createHash("sha256").update(JSON.stringify(key)).digest("hex"));
  if (existsSync(path)) return path;
  // Two test files may write it at the same time: each writes its own, and one of them is kept.
  const own = `${path}-${randomUUID()}`;
  await make(own);
  renameSync(own, path);
  return path;
}
