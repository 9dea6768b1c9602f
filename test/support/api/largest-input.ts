/** A JSON schema of the OpenAPI document. */
export type JsonSchema = { [keyword: string]: any };

/** `large`: few values, each as long as it may be; `many`: as many values as fit, each as short as it may be. */
export type Flavor = "large" | "many";

const OF_FORMAT: Record<string, string> = {
  "date-time": "2040-01-01T00:00:00Z",
  date: "2040-01-01",
  email: "someone@example.com",
  uri: "https://example.com/",
};
/** Values for patterns, tried in this order. */
const OF_PATTERN = ["name", "en", "#00ff00", "v1", "1", "a".repeat(64), "a.b", "10.0.0.0/8", "segment_00001.m4s"];

/**
 * A value that a schema allows and whose JSON has about `bytes`, as far as the schema allows that many. Strings with a format or a
 * pattern are their example.
 */
export function largest(schema: JsonSchema, bytes: number, flavor: Flavor, document: JsonSchema): unknown {
  const of = (one: JsonSchema, share: number): unknown => largest(one, share, flavor, document);
  if (schema.$ref) {
    const path = String(schema.$ref).slice(2).split("/");
    return of(
      path.reduce((found: JsonSchema, key) => found[key], document),
      bytes,
    );
  }
  if (schema.const !== undefined) return schema.const;
  if (schema.enum) return schema.enum[0];
  const options: JsonSchema[] | undefined = schema.anyOf ?? schema.oneOf;
  if (options)
    return of(options.find(({ type }) => type === "object" || type === "array") ?? (options[0] as JsonSchema), bytes);
  if (schema.allOf) return Object.assign({}, ...schema.allOf.map((one: JsonSchema) => of(one, bytes)));
  const type = Array.isArray(schema.type) ? schema.type.find((one: string) => one !== "null") : schema.type;
  switch (type) {
    case "string": {
      if (schema.pattern || schema.format) return patterned(schema);
      const least = Math.max(1, schema.minLength ?? 1);
      return "x".repeat(flavor === "many" ? least : Math.max(least, Math.min(bytes, schema.maxLength ?? bytes)));
    }
    case "integer":
    case "number":
      return schema.minimum ?? 1;
    case "boolean":
      return true;
    case "array": {
      const item = of(schema.items ?? {}, 1);
      const most = Math.max(1, Math.floor(bytes / (JSON.stringify(item ?? null).length + 1)));
      const count = Math.min(schema.maxItems ?? most, flavor === "many" ? most : Math.min(most, 20));
      return Array.from({ length: count }, () => of(schema.items ?? {}, bytes / count));
    }
    default: {
      const own = Object.entries<JsonSchema>(schema.properties ?? {});
      const made: Record<string, unknown> = {};
      for (const [name, each] of own) made[name] = of(each, bytes / own.length);
      if (schema.additionalProperties || (own.length === 0 && type === "object")) {
        const each = typeof schema.additionalProperties === "object" ? schema.additionalProperties : { type: "string" };
        const most = schema.maxProperties ?? Math.floor(bytes / 20);
        const count = Math.max(1, flavor === "many" ? Math.min(most, bytes / 20) : 1);
        for (let key = 0; key < count; key++) made[`k${key}`] = of(each, bytes / count);
      }
      return made;
    }
  }
}

function patterned({ pattern, format, example, examples }: JsonSchema): string {
  const given: string | undefined = example ?? examples?.[0] ?? OF_FORMAT[format];
  if (given !== undefined) return given;
  const expression = pattern === undefined ? null : new RegExp(pattern, "u");
  return OF_PATTERN.find((value) => expression?.test(value)) ?? "name";
}
