import { isWhole, type Schema } from "../schema.ts";
import { comment, exported } from "./names.ts";

/** Where a type is used: a field of what is sent can be absent or null, one of what is received only null. */
type Direction = "sent" | "received";

type Field = { key: string; name: string; type: string; isOptional: boolean; schema: Schema };

/** Writes schemas as types of Go; each object becomes a struct with a name of its own. */
export class TypeWriter {
  readonly #names = new Set<string>();
  readonly #declarations: string[] = [];
  readonly #taken: readonly string[];

  /** `taken`: names of hand-written types. */
  constructor(components: Record<string, Schema>, taken: readonly string[]) {
    this.#taken = taken;
    for (const name of [...taken, ...Object.keys(components).map((each) => this.#nameOf(each))]) this.#names.add(name);
    for (const [name, schema] of Object.entries(components)) this.#component(this.#nameOf(name), schema);
  }

  #nameOf(component: string): string {
    const name = exported(component);
    return this.#taken.includes(name) ? `${name}Record` : name;
  }

  /** All declarations. */
  text(): string {
    return this.#declarations.join("\n");
  }

  /** The type of `schema`; `name` is that of a new struct, and `field` the schema's own. */
  typeOf(schema: Schema, name: string, direction: Direction = "received", field = ""): string {
    if (schema.$ref) return this.#nameOf(schema.$ref.slice(schema.$ref.lastIndexOf("/") + 1));
    if (schema.allOf?.length === 1) return this.typeOf(schema.allOf[0] as Schema, name, direction, field);
    if (schema.anyOf) return this.#union(schema.anyOf, name, direction);
    if (schema.enum?.every((value) => typeof value === "string")) return "string";
    switch (schema.type) {
      case "string":
        return "string";
      case "integer":
        return "int64";
      case "number":
        return isWhole(field) ? "int64" : "float64";
      case "boolean":
        return "bool";
      case "array":
        return `[]${this.#element(schema.items ?? {}, `${name}Item`, direction, field)}`;
      case "object":
        return this.#object(schema, name, direction);
      default:
        return "any";
    }
  }

  /** A struct of these fields, with this name. */
  struct(name: string, schema: Schema, direction: Direction): string {
    return this.#struct(this.#unique(name), schema, direction);
  }

  #element(schema: Schema, name: string, direction: Direction, field: string): string {
    const type = this.typeOf(schema, name, direction, field);
    return schema.nullable && !isNilable(type) ? `*${type}` : type;
  }

  /** Objects with fields in common are one struct, whose other fields stay JSON. All else is `any`. */
  #union(choices: Schema[], name: string, direction: Direction): string {
    const objects = choices.filter(({ properties }) => properties);
    if (objects.length < choices.length || objects.length === 0) return "any";
    const [first = {}] = objects;
    const properties = Object.fromEntries(
      Object.entries(first.properties ?? {})
        .filter(([key]) => objects.every(({ properties = {} }) => key in properties))
        .map(([key, schema]) => {
          const kinds = new Set(objects.map(({ properties = {} }) => JSON.stringify(plain(properties[key] ?? {}))));
          return [key, kinds.size === 1 ? plain(schema) : { description: schema.description ?? "" }];
        }),
    );
    return this.#struct(this.#unique(name), { type: "object", properties, required: first.required ?? [] }, direction);
  }

  #object(schema: Schema, name: string, direction: Direction): string {
    if (Object.keys(schema.properties ?? {}).length > 0) return this.#struct(this.#unique(name), schema, direction);
    const { additionalProperties: values } = schema;
    return `map[string]${typeof values === "object" ? this.#element(values, `${name}Value`, direction, "") : "any"}`;
  }

  #component(name: string, schema: Schema): void {
    if (schema.properties) this.#struct(name, schema, "received");
    else if (schema.anyOf?.every(({ properties }) => properties)) {
      this.#names.delete(name);
      this.#union(schema.anyOf, name, "received");
    } else this.#declarations.push(`type ${name} = ${this.typeOf(schema, `${name}Choice`)}\n`);
  }

  #unique(name: string): string {
    let free = name;
    for (let number = 2; this.#names.has(free); number++) free = `${name}${number}`;
    this.#names.add(free);
    return free;
  }

  #struct(name: string, { properties = {}, required = [], description }: Schema, direction: Direction): string {
    const used = new Set<string>();
    const fields = Object.entries(properties).map(([key, schema]): Field => {
      const isOptional = !required.includes(key);
      const type = this.#fieldType(schema, name + exported(key), { direction, key, isOptional });
      const unique = used.has(exported(key)) ? `${exported(key)}2` : exported(key);
      used.add(unique);
      return { key, name: unique, type, isOptional, schema };
    });
    const lines = fields.map(({ key, name, type, isOptional, schema }) => {
      const about = [schema.description, ...(schema.enum ? [`One of ${schema.enum.join(", ")}.`] : [])].filter(Boolean);
      const tag = `\`json:"${key}${isOptional ? ",omitempty" : ""}"\``;
      return `${about.length > 0 ? `${comment(about.join("\n"), "\t")}\n` : ""}\t${name} ${type} ${tag}`;
    });
    const about = description ? `${comment(`${name}: ${description}`)}\n` : "";
    this.#declarations.push(`${about}type ${name} struct {\n${lines.join("\n\n")}\n}\n`);
    return name;
  }

  #fieldType(
    schema: Schema,
    name: string,
    { direction, key, isOptional }: { direction: Direction; key: string; isOptional: boolean },
  ): string {
    if (schema.format === "binary") return "[]byte";
    const type = this.typeOf(schema, name, direction, key);
    if (Object.keys(schema).every((each) => each === "description")) return "json.RawMessage";
    if (direction === "sent" && isOptional && schema.nullable) return `Nullable[${type}]`;
    return (isOptional || schema.nullable) && !isNilable(type) ? `*${type}` : type;
  }
}

/** Without the texts and values, in which fields of the same type differ. */
function plain(schema: Schema): Schema {
  const { description: _, enum: __, ...rest } = schema;
  return rest;
}

const isNilable = (type: string) => /^(\[\]|map\[|\*|any$|json\.RawMessage$)/.test(type);
