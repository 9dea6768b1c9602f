import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { onTestFinished } from "vitest";

/** When the running test is over; for what a whole file shares (made in `beforeAll`), when the file is. */
export function atEnd(work: () => unknown): void {
  try {
    onTestFinished(async () => {
      await work();
    });
  } catch {
    process.once("exit", work);
  }
}

/** An empty folder of this test's own, removed when it is over. */
export function emptyFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), "vodbox-test-"));
  atEnd(() => rmSync(folder, { recursive: true, force: true, maxRetries: 5 }));
  return folder;
}
