import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { paths } from "../build/paths.ts";
import { apiTypes } from "./api-types.ts";
import { openApiDocument } from "./document.ts";
import { enumTables } from "./enums.ts";
import { methodTypes, operationTable } from "./operations.ts";

/**
 * Writes to build/client what the TypeScript client consists of besides src/clients/typescript, generated from the OpenAPI
 * document alone. Tests also use the types as any customer would: they do not compile when the document differs from what
 * they expect.
 */
export async function generateClient(): Promise<void> {
  const folder = join(paths.root, "build/client");
  const document = await openApiDocument();
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, "api.d.ts"), await apiTypes(document));
  writeFileSync(join(folder, "operations.ts"), operationTable(document));
  writeFileSync(join(folder, "methods.ts"), methodTypes(document));
  writeFileSync(join(folder, "enums.ts"), enumTables(document));
}
