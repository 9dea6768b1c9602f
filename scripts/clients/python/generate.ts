import type { Document } from "../schema.ts";
import { operationsModule } from "./operations.ts";
import { TypeWriter } from "./types.ts";

/** The generated modules of the Python client, by file name. */
export function pythonModules(document: Document, version: string): Record<string, string> {
  const types = new TypeWriter(document.components.schemas);
  // The types of the operations are declared while their methods are written.
  const operations = operationsModule(document, types);
  return {
    "_version.py": `VERSION = ${JSON.stringify(version)}\n`,
    "models.py": types.module(),
    "operations.py": operations,
  };
}
