import type { TestProject } from "vitest/node";
import { newFolder, removeFolder } from "./folder.ts";
import { deleteUnused } from "./media/recipe-cache.ts";

declare module "vitest" {
  interface ProvidedContext {
    /** Path of a directory for what several test files need; see fixture.ts. */
    fixtures: string;
  }
}

export default function setup(project: TestProject): () => void {
  deleteUnused();
  const folder = newFolder();
  project.provide("fixtures", folder);
  return () => removeFolder(folder);
}
