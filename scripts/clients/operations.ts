import type { OpenAPI3, OperationObject, ParameterObject } from "openapi-typescript";

type Operation = OperationObject & { method: string; path: string; operationId: string };

const HEADER = "// Generated from the OpenAPI document by `npm run client`.\n";

/** All operations, by the order of the document. */
export function operationsOf(document: OpenAPI3): Operation[] {
  return Object.entries(document.paths ?? {}).flatMap(([path, item]) =>
    Object.entries(item as Record<string, OperationObject>).map(([method, operation]) => ({
      ...operation,
      method: method.toUpperCase(),
      path,
      operationId: operation.operationId as string,
    })),
  );
}

const parametersOf = (operation: Operation) => (operation.parameters ?? []) as ParameterObject[];
const KEY = "Idempotency-Key";
const takesKey = (operation: Operation) => parametersOf(operation).some(({ name }) => name === KEY);
const isList = (operation: Operation) => parametersOf(operation).some(({ name }) => name === "cursor");
const mediaTypes = ({ requestBody }: Operation) =>
  requestBody && "content" in requestBody ? Object.keys(requestBody.content) : [];

/**
 * The client takes path, query and header parameters and `body` as fields of one object, and finds their place by their
 * name. Throws for a document where that is not possible.
 */
function requireDistinctNames(operation: Operation): void {
  const parameters = parametersOf(operation).filter(({ name }) => name !== KEY);
  const names = parameters.map(({ name }) => name);
  const isAmbiguous = new Set([...names, "body"]).size !== names.length + 1;
  const isMisplaced = parameters.some((each) => (each.in === "header") !== each.name.startsWith("X-"));
  if (isAmbiguous || isMisplaced) throw new Error(`${operation.operationId}: ambiguous parameters ${names.join(", ")}`);
}

/** What the client needs to know of each operation when it runs: method, path, and flags (request.ts). */
export function operationTable(document: OpenAPI3): string {
  const rows = operationsOf(document).map((operation) => {
    requireDistinctNames(operation);
    const types = mediaTypes(operation);
    const flags = [
      takesKey(operation) ? "i" : "",
      isList(operation) ? "l" : "",
      types.includes("text/csv") ? "c" : "",
      types.includes("multipart/form-data") && !types.includes("application/json") ? "f" : "",
      operation.method === "DELETE" && types.length > 0 ? "b" : "",
    ].join("");
    const fields = [operation.method, operation.path, ...(flags ? [flags] : [])];
    return `  ${operation.operationId}: ${JSON.stringify(fields).replaceAll(",", ", ")},\n`;
  });
  return [
    HEADER,
    "/** Method, path, and flags: `i` takes an Idempotency-Key, `l` returns pages, `f` takes a form, `c` CSV, `b` a body although it deletes. */\n",
    "export const OPERATIONS = {\n",
    ...rows,
    "} as const satisfies Record<string, readonly [method: string, path: string, flags?: string]>;\n",
  ].join("");
}

/** The signatures of the client's methods with their documentation, and a name for each schema. */
export function methodTypes(document: OpenAPI3): string {
  const methods = operationsOf(document).map((operation) => {
    const { operationId: id, summary, description } = operation;
    const isRequired =
      parametersOf(operation).some(({ name, required }) => required && name !== KEY) ||
      (operation.requestBody && "content" in operation.requestBody && operation.requestBody.required);
    const result = isList(operation) ? `List<Item<"${id}">>` : `Promise<Result<"${id}">>`;
    const text = [summary, description].map((each) => each?.replace(/([^.])$/, "$1.")).filter(Boolean);
    const documentation = text.join(" ").replaceAll("*/", "");
    return `  /** ${documentation} */\n  ${id}(params${isRequired ? "" : "?"}: Params<"${id}">, options?: RequestOptions): ${result};\n`;
  });
  const schemas = Object.keys(document.components?.schemas ?? {}).map(
    (name) => `export type ${name === "Error" ? "ErrorBody" : name} = components["schemas"]["${name}"];\n`,
  );
  return [
    HEADER,
    'import type { List } from "../../src/clients/typescript/list.ts";\n',
    'import type { RequestOptions } from "../../src/clients/typescript/options.ts";\n',
    'import type { Item, Params, Result } from "../../src/clients/typescript/types.ts";\n',
    'import type { components } from "./api.d.ts";\n\n',
    ...schemas,
    "\nexport interface Methods {\n",
    ...methods,
    "}\n",
  ].join("");
}
