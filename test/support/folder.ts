import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { onTestFinished } from "vitest";

/** At the end of the running test. What a whole file shares (created in `beforeAll`) the file removes itself. */
export function atEnd(work: () => unknown): void {
  try {
    onTestFinished(async () => {
      await work();
    });
  } catch {
    // Not inside a test: the hook that created it returns its removal.
  }
}

export const newFolder = () => mkdtempSync(join(tmpdir(), "vodbox-test-"));
export const removeFolder = (folder: string) => rmSync(folder, { recursive: true, force: true, maxRetries: 5 });

/** An empty directory for this test, deleted at its end. */
export function emptyFolder(): string {
  const folder = newFolder();
  atEnd(() => removeFolder(folder));
  return folder;
}
