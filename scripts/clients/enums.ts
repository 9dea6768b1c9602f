import type { OpenAPI3 } from "openapi-typescript";
import { operationsOf } from "./operations.ts";

const HEADER = "// Generated from the OpenAPI document by `npm run client`.\n";

type Schema = { enum?: unknown[]; items?: Schema; anyOf?: Schema[]; properties?: Record<string, Schema> };
type Content = { content?: Record<string, { schema?: Schema }> };

/** The texts that a field may have, or the elements of a list; undefined for any other field. */
function valuesOf(schema: Schema | undefined): string[] | undefined {
  if (!schema) return undefined;
  const { enum: values, items, anyOf } = schema;
  if (values) {
    const texts = values.filter((value) => typeof value === "string");
    return texts.length > 0 ? texts : undefined;
  }
  if (items) return valuesOf(items);
  const found = anyOf?.map(valuesOf).filter((each) => each !== undefined) ?? [];
  return found.length === 1 ? found[0] : undefined;
}

const constantOf = (name: string, field: string) =>
  `${name}_${field}`
    .replace(/([a-z\d])([A-Z])/g, "$1_$2")
    .replace(/\W/g, "_")
    .toUpperCase();

/**
 * The values of all enumerations, as constants: `ASSET_PLAYBACK_STATUS` for the field of a schema, `CREATE_API_KEY_SCOPES` for
 * a field of a body or a parameter of an operation. A bundler removes those that are not imported.
 */
export function enumTables(document: OpenAPI3): string {
  const found = new Map<string, string[]>();
  const add = (name: string, fields: Record<string, Schema | undefined> | undefined) => {
    for (const [field, schema] of Object.entries(fields ?? {})) {
      const values = valuesOf(schema);
      if (values) found.set(constantOf(name, field), values);
    }
  };
  for (const [name, schema] of Object.entries(document.components?.schemas ?? {}))
    add(name, (schema as Schema).properties);
  for (const { operationId, parameters = [], requestBody } of operationsOf(document)) {
    for (const parameter of parameters)
      if ("schema" in parameter) add(operationId, { [parameter.name]: parameter.schema as Schema });
    for (const { schema } of Object.values((requestBody as Content | undefined)?.content ?? {}))
      add(operationId, schema?.properties);
  }
  return [
    HEADER,
    ...[...found].map(([name, values]) => `export const ${name} = ${JSON.stringify(values)} as const;\n`),
  ].join("");
}
