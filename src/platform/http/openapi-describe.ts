import { sampleOf } from "./openapi-examples.ts";
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

/** Puts the description of each property last, and behind it an example where its value is simple. */
export function describeProperties(schema: Schema): Schema {
  const { properties, items, additionalProperties: more, anyOf, oneOf, allOf } = schema;
  return {
    ...schema,
    ...(properties && { properties: describeEach(properties) }),
    ...(items && { items: describeProperties(items) }),
    ...(typeof more === "object" && { additionalProperties: describeProperties(more) }),
    ...(anyOf && { anyOf: anyOf.map(describeProperties) }),
    ...(oneOf && { oneOf: oneOf.map(describeProperties) }),
    ...(allOf && { allOf: allOf.map(describeProperties) }),
  };
}

const describeEach = (properties: Record<string, Schema>) =>
  Object.fromEntries(Object.entries(properties).map(([name, schema]) => [name, describe(name, schema)]));

function describe(name: string, schema: Schema): Schema {
  const { description, ...described } = describeProperties(schema);
  if (description === undefined) return described;
  const sample = "example" in described || described.enum ? undefined : sampleOf(name, described);
  return { ...described, description, ...(sample !== undefined && sample !== null && { example: sample }) };
}
