import { isWhole, type Schema } from "../schema.ts";
import { docstring, isName, literal, pascalCase } from "./names.ts";

/** Writes schemas as types of Python; each object becomes a `TypedDict` with a unique name. */
export class TypeWriter {
  readonly names = new Set<string>();
  readonly #declarations: string[] = [];

  constructor(components: Record<string, Schema>) {
    for (const name of Object.keys(components)) this.names.add(name);
    for (const [name, schema] of Object.entries(components)) this.#component(name, schema);
  }

  /** The module with all declarations. */
  module(): string {
    return [
      '"""Records of the API, generated from its OpenAPI document."""\n',
      "from __future__ import annotations\n",
      "from typing import Any, Literal, Optional, TypedDict, Union\n",
      ...this.#declarations,
    ].join("\n");
  }

  /** The type of `schema`; `name` is that of a new TypedDict, and `field` the schema's own. */
  typeOf(schema: Schema, name: string, field = ""): string {
    const plain = this.#plainType(schema, name, field);
    return schema.nullable && !plain.startsWith("Optional[") ? `Optional[${plain}]` : plain;
  }

  #plainType(schema: Schema, name: string, field: string): string {
    if (schema.$ref) return schema.$ref.slice(schema.$ref.lastIndexOf("/") + 1);
    if (schema.allOf?.length === 1) return this.typeOf(schema.allOf[0] as Schema, name, field);
    if (schema.anyOf) return this.#union(schema.anyOf, name, field);
    if (schema.enum) return `Literal[${schema.enum.map(literal).join(", ")}]`;
    switch (schema.type) {
      case "string":
        return "str";
      case "integer":
        return "int";
      case "number":
        return isWhole(field) ? "int" : "float";
      case "boolean":
        return "bool";
      case "array":
        return `list[${this.typeOf(schema.items ?? {}, `${name}Item`, field)}]`;
      case "object":
        return this.#object(schema, name);
      default:
        return "Any";
    }
  }

  #union(choices: Schema[], name: string, field: string): string {
    const types = choices.map((choice) => this.typeOf(choice, name, field));
    return types.length === 1 ? (types[0] as string) : `Union[${[...new Set(types)].join(", ")}]`;
  }

  #object(schema: Schema, name: string): string {
    if (schema.properties) return this.#typedDict(schema, this.#unique(name));
    const { additionalProperties: values } = schema;
    return `dict[str, ${typeof values === "object" ? this.typeOf(values, `${name}Value`) : "Any"}]`;
  }

  #component(name: string, schema: Schema): void {
    if (schema.properties && !schema.anyOf && !schema.allOf) this.#typedDict(schema, name);
    // A type alias is evaluated, and may name what is declared later.
    else this.#declarations.push(`${name} = ${quoted(this.typeOf(schema, `${name}Choice`))}\n`);
  }

  #unique(name: string): string {
    let free = name;
    for (let number = 2; this.names.has(free); number++) free = `${name}${number}`;
    this.names.add(free);
    return free;
  }

  #typedDict({ properties = {}, required = [], description }: Schema, name: string): string {
    const all = Object.entries(properties).map(([key, schema]) => ({
      key,
      type: this.typeOf(schema, name + pascalCase(key), key),
      description: schema.description,
    }));
    const isRequired = ({ key }: { key: string }) => required.includes(key);
    const mandatory = all.filter(isRequired);
    const optional = all.filter((field) => !isRequired(field));
    // `NotRequired` needs Python 3.11.
    const base = mandatory.length > 0 && optional.length > 0 ? `_${name}Required` : undefined;
    if (base) this.#declarations.push(declaration(base, mandatory, { base: "TypedDict", isTotal: true }));
    this.#declarations.push(
      base
        ? declaration(name, optional, { base, isTotal: false, description })
        : declaration(name, all, { base: "TypedDict", isTotal: optional.length === 0, description }),
    );
    return name;
  }
}

type Field = { key: string; type: string; description: string | undefined };
type Kind = { base: string; isTotal: boolean; description?: string | undefined };

const quoted = (type: string) => (/^[\w.]+$/.test(type) ? type : type.replace(/\b(?!Union|Optional)[A-Z]\w*/g, '"$&"'));

function declaration(name: string, fields: Field[], { base, isTotal, description }: Kind): string {
  if (!fields.every(({ key }) => isName(key))) return functional(name, fields, base, isTotal);
  const lines = fields.map(
    ({ key, type, description }) =>
      `    ${key}: ${type}\n${description ? docstring(description.split("\n"), "    ") : ""}`,
  );
  const head = `\nclass ${name}(${base}${isTotal ? "" : ", total=False"}):\n`;
  const doc = description ? docstring(description.split("\n"), "    ") : "";
  return head + doc + (lines.join("") || "    pass\n");
}

/** For keys that are no names. Such a TypedDict has no optional keys besides others. */
function functional(name: string, fields: Field[], base: string, isTotal: boolean): string {
  if (base !== "TypedDict") throw new Error(`${name}: optional keys must be names.`);
  const entries = fields.map(({ key, type }) => `${literal(key)}: ${literal(type)}`);
  return `\n${name} = TypedDict("${name}", {${entries.join(", ")}}${isTotal ? "" : ", total=False"})\n`;
}
