import { isWhole, type Schema } from "../schema.ts";

/** A string in PHP. */
export const literal = (text: string): string => `'${text.replaceAll("\\", "\\\\").replaceAll("'", "\\'")}'`;

const nameOf = (reference: string) => reference.slice(reference.lastIndexOf("/") + 1);

/**
 * A schema as a type of PHPStan and Psalm, in one line: `array{id: int, title?: string|null}`. Components are named by
 * their `@phpstan-type`. `field` is the name of the schema's own field.
 */
export function typeOf(schema: Schema, field = ""): string {
  const plain = plainType(schema, field);
  return schema.nullable && plain !== "mixed" && plain !== "null" ? `${plain}|null` : plain;
}

function plainType(schema: Schema, field: string): string {
  if (schema.$ref) return nameOf(schema.$ref);
  if (schema.allOf?.length === 1) return typeOf(schema.allOf[0] as Schema, field);
  if (schema.anyOf) return [...new Set(schema.anyOf.map((each) => typeOf(each, field)))].join("|");
  if (schema.enum) return schema.enum.map((value) => (value === null ? "null" : literal(String(value)))).join("|");
  switch (schema.type) {
    case "string":
      return "string";
    case "integer":
      return "int";
    case "number":
      return isWhole(field) ? "int" : "int|float";
    case "boolean":
      return "bool";
    case "array":
      return `list<${typeOf(schema.items ?? {}, field)}>`;
    case "object":
      return objectType(schema);
    default:
      return "mixed";
  }
}

function objectType({ properties, additionalProperties: values, required = [] }: Schema): string {
  if (!properties) return `array<string, ${typeof values === "object" ? typeOf(values) : "mixed"}>`;
  const fields = Object.entries(properties).map(
    ([name, schema]) =>
      `${/^[A-Za-z_]\w*$/.test(name) ? name : literal(name)}${required.includes(name) ? "" : "?"}: ${typeOf(schema, name)}`,
  );
  return `array{${fields.join(", ")}}`;
}
