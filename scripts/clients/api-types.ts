import { registerHooks } from "node:module";
import type { OpenAPI3 } from "openapi-typescript";

// The generator prints with the compiler's old API, which TypeScript 7 no longer has.
registerHooks({
  resolve: (specifier, context, next) => next(specifier === "typescript" ? "typescript-5" : specifier, context),
});

/** TypeScript declarations of the paths, operations and schemas of an OpenAPI document. */
export async function apiTypes(document: OpenAPI3): Promise<string> {
  const { default: openapiTS, astToString } = await import("openapi-typescript");
  return astToString(await openapiTS(withoutRepetition(document), { defaultNonNullable: false }));
}

/**
 * The document without headers and examples, and with `default` as the only error of an operation: all errors have the same
 * schema. This leaves a fifth of the declarations.
 */
function withoutRepetition(document: OpenAPI3): OpenAPI3 {
  const copy = JSON.parse(
    JSON.stringify(document, (key, value) => (key === "example" && typeof value === "object" ? undefined : value)),
  );
  delete copy.components.headers;
  for (const item of Object.values(copy.paths as Record<string, Record<string, any>>))
    for (const operation of Object.values(item))
      for (const [status, response] of Object.entries<any>(operation.responses ?? {})) {
        delete response.headers;
        if (/^[45]/.test(status)) delete operation.responses[status];
      }
  return copy;
}
