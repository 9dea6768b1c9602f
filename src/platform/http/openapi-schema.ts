import { toJsonSchema } from "@valibot/to-json-schema";
import * as v from "valibot";

export type Json = Record<string, unknown>;
type Schema = v.GenericSchema<unknown, unknown>;

/** Converts a valibot schema to OpenAPI 3.0.3. Input is what a client sends, output is what it receives. */
export function schemaOf(schema: Schema, typeMode: "input" | "output" = "input"): Json {
  const { $schema: _, ...json } = toJsonSchema(schema, {
    target: "openapi-3.0",
    typeMode,
    errorMode: "ignore",
    // JSON Schema allows an empty list here, OpenAPI 3.0 does not.
    overrideSchema({ valibotSchema, jsonSchema: { required, ...rest } }) {
      if ("entries" in valibotSchema) addDescriptions(valibotSchema.entries as Entries, rest.properties as Properties);
      // The only custom schema: a file in a form.
      if (valibotSchema.type === "custom") return { type: "string", format: "binary" };
      if (TUPLES.has(valibotSchema.type)) return withItemsOnce(rest);
      return required?.length === 0 ? rest : undefined;
    },
    overrideAction({ valibotAction, jsonSchema }) {
      if (valibotAction.type !== "metadata") return undefined;
      // The metadata arrives merged: keys for `validate` are removed, keys for OpenAPI override the generated ones.
      const { errorCode: _, openapi, ...rest } = jsonSchema as Json;
      return (openapi as typeof jsonSchema | undefined) ?? rest;
    },
  }) as Json;
  return json;
}

type Entries = Record<string, Schema & { wrapped?: Schema }>;
type Properties = Record<string, Json>;

/** The conversion of an input ends at a transformation, and leaves out a description behind it. */
function addDescriptions(entries: Entries, properties: Properties): void {
  for (const [name, property] of Object.entries(properties)) {
    const description = entries[name] && ownDescription(entries[name]);
    if (description !== undefined) property.description ??= description;
  }
}

const ownDescription = (schema: Schema & { wrapped?: Schema }): string | undefined =>
  v.getDescription(schema) ?? (schema.wrapped && ownDescription(schema.wrapped));

const TUPLES = new Set(["tuple", "loose_tuple", "strict_tuple"]);

/** OpenAPI 3.0 has no tuples: an item is any of theirs. Each kind of them is named once. */
function withItemsOnce<T extends object>(schema: T): T {
  const { items } = schema as { items?: { anyOf?: object[] } };
  if (!items?.anyOf) return schema;
  const kinds = [...new Map(items.anyOf.map((kind) => [JSON.stringify(kind), kind])).values()];
  return { ...schema, items: kinds.length === 1 ? kinds[0] : { anyOf: kinds } };
}

/**
 * Moves every schema with a title into `components` and replaces it by a reference, so that a record is defined once.
 */
export function withReferences(schema: unknown, components: Record<string, Json>): unknown {
  if (Array.isArray(schema)) return schema.map((item) => withReferences(item, components));
  if (typeof schema !== "object" || schema === null) return schema;
  const inner = Object.fromEntries(
    Object.entries(schema).map(([name, value]) => [name, withReferences(value, components)]),
  ) as Json;
  const { title, nullable, description, ...rest } = inner;
  // A property may have this name too; its value is a schema, not a text.
  if (typeof title !== "string") return inner.nullable && Array.isArray(inner.anyOf) ? nullableChoice(inner) : inner;
  components[title] ??= rest;
  const reference = { $ref: `#/components/schemas/${title}` };
  // It describes this use of the record. OpenAPI 3.0 ignores siblings of $ref, and nullable needs a type.
  const described = description === undefined ? {} : { description };
  if (nullable) return { type: "object", nullable: true, allOf: [reference], ...described };
  return description === undefined ? reference : { allOf: [reference], ...described };
}

/** OpenAPI 3.0: nullable applies only together with a type. */
function nullableChoice({ nullable, anyOf, ...rest }: Json): Json {
  const [first, ...others] = anyOf as Json[];
  return { ...rest, anyOf: [{ ...first, nullable }, ...others] };
}
