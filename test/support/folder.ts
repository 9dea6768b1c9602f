import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { onTestFinished } from "vitest";

/** When the running test is over. What a whole file shares (made in `beforeAll`) its file ends itself. */
export function atEnd(work: () => unknown): void {
  try {
    onTestFinished(async () => {
      await work();
    });
  } catch {
    // Not inside a test: the hook that made it returns what ends it.
  }
}

export const newFolder = () => mkdtempSync(join(tmpdir(), "vodbox-test-"));
export const removeFolder = (folder: string) => rmSync(folder, { recursive: true, force: true, maxRetries: 5 });

/** An empty folder of this test's own, removed when it is over. */
export function emptyFolder(): string {
  const folder = newFolder();
  atEnd(() => removeFolder(folder));
  return folder;
}
