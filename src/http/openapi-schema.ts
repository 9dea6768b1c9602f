import { toJsonSchema } from "@valibot/to-json-schema";
import type * as v from "valibot";

export type Json = Record<string, unknown>;
type Schema = v.GenericSchema<unknown, unknown>;

/** A schema of the table as OpenAPI 3.0.3 has it. Input is what a client sends, output what it gets. */
export function schemaOf(schema: Schema, typeMode: "input" | "output" = "input"): Json {
  const { $schema: _, ...json } = toJsonSchema(schema, {
    target: "openapi-3.0",
    typeMode,
    errorMode: "ignore",
    // OpenAPI 3.0 takes no empty list here, JSON Schema does.
    overrideSchema({ valibotSchema, jsonSchema: { required, ...rest } }) {
      // The only custom schema there is: a file in a form.
      if (valibotSchema.type === "custom") return { type: "string", format: "binary" };
      return required?.length === 0 ? rest : undefined;
    },
    overrideAction({ valibotAction, jsonSchema }) {
      if (valibotAction.type !== "metadata") return undefined;
      // It comes merged in already: what is for `validate` goes, and what is for here takes the place of all before.
      const { errorCode: _, openapi, ...rest } = jsonSchema as Json;
      return (openapi as typeof jsonSchema | undefined) ?? rest;
    },
  }) as Json;
  return json;
}

/**
 * Moves every schema with a title into `components` and puts a reference in its place: one definition of a record,
 * whatever the number of answers that hold it.
 */
export function withReferences(schema: unknown, components: Record<string, Json>): unknown {
  if (Array.isArray(schema)) return schema.map((item) => withReferences(item, components));
  if (typeof schema !== "object" || schema === null) return schema;
  const inner = Object.fromEntries(
    Object.entries(schema).map(([name, value]) => [name, withReferences(value, components)]),
  ) as Json;
  const { title, nullable, ...rest } = inner;
  // A property may be called so too; its value is a schema then, and no text.
  if (typeof title !== "string") return inner.nullable && Array.isArray(inner.anyOf) ? nullableChoice(inner) : inner;
  components[title] ??= rest;
  const reference = { $ref: `#/components/schemas/${title}` };
  // In OpenAPI 3.0 nothing that stands beside a $ref counts, and nullable counts only beside a type.
  return nullable ? { type: "object", nullable: true, allOf: [reference] } : reference;
}

/** OpenAPI 3.0: nullable is only heard beside a type. */
function nullableChoice({ nullable, anyOf, ...rest }: Json): Json {
  const [first, ...others] = anyOf as Json[];
  return { ...rest, anyOf: [{ ...first, nullable }, ...others] };
}
