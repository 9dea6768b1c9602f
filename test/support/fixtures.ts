import type { TestProject } from "vitest/node";
import { newFolder, removeFolder } from "./folder.ts";

declare module "vitest" {
  interface ProvidedContext {
    /** Path of a directory for what several test files need; see fixture.ts. */
    fixtures: string;
  }
}

export default function setup(project: TestProject): () => void {
  const folder = newFolder();
  project.provide("fixtures", folder);
  return () => removeFolder(folder);
}
