import { sampleOf } from "./openapi-examples.ts";
import { FIELDS } from "./openapi-fields.ts";
import type { Json } from "./openapi-schema.ts";

type Schema = Json & {
  $ref?: string;
  properties?: Record<string, Schema>;
  items?: Schema;
  additionalProperties?: Schema | boolean;
  anyOf?: Schema[];
  oneOf?: Schema[];
  allOf?: Schema[];
};

/** The description of a field by its name and the fields and schema that contain it, innermost last. */
export function descriptionOf(name: string, parents: readonly string[]): string | undefined {
  const specific = parents.findLast((parent) => Object.hasOwn(FIELDS, `${parent}.${name}`));
  const key = specific === undefined ? name : `${specific}.${name}`;
  return Object.hasOwn(FIELDS, key) ? FIELDS[key] : undefined;
}

/** Adds descriptions, and examples of simple values, to all properties of a schema that have none. */
export function describeProperties(schema: Schema, parents: readonly string[] = []): Schema {
  const inner = (one: Schema) => describeProperties(one, parents);
  const { properties, items, additionalProperties: more, anyOf, oneOf, allOf } = schema;
  return {
    ...schema,
    ...(properties && { properties: describeEach(properties, parents) }),
    ...(items && { items: inner(items) }),
    ...(typeof more === "object" && { additionalProperties: inner(more) }),
    ...(anyOf && { anyOf: anyOf.map(inner) }),
    ...(oneOf && { oneOf: oneOf.map(inner) }),
    ...(allOf && { allOf: allOf.map(inner) }),
  };
}

const describeEach = (properties: Record<string, Schema>, parents: readonly string[]) =>
  Object.fromEntries(Object.entries(properties).map(([name, schema]) => [name, describe(name, schema, parents)]));

function describe(name: string, schema: Schema, parents: readonly string[]): Schema {
  const { description: own, ...described } = describeProperties(schema, [...parents, name]);
  const description = own ?? descriptionOf(name, parents);
  if (description === undefined) return described;
  // In OpenAPI 3.0, siblings of $ref are ignored.
  if (described.$ref !== undefined) return { allOf: [{ $ref: described.$ref }], description };
  const sample = "example" in described || described.enum ? undefined : sampleOf(name, described);
  return { ...described, description, ...(sample !== undefined && sample !== null && { example: sample }) };
}
