import type { Document, Operation, Parameter, Schema } from "../schema.ts";
import { literal, typeOf } from "./types.ts";

const JSON_TYPE = "application/json";
const FORM_TYPE = "multipart/form-data";

/** A parameter of a method: `$id`. `type` is PHP's own, `documented` that of PHPStan. */
type Argument = { name: string; type: string; documented: string; value?: string; description?: string | undefined };
/** What an operation sends: an argument, and entries of the options of `request`. */
type Body = { args: Argument[]; options: string[] };

/** `Operations.php`: one method for each operation, and the types of all records. */
export function operationsFile(document: Document): string {
  const methods = Object.entries(document.paths).flatMap(([path, operations]) =>
    Object.entries(operations).map(([method, operation]) => methodOf(method.toUpperCase(), path, operation)),
  );
  const types = Object.entries(document.components.schemas).map(
    ([name, schema]) => ` * @phpstan-type ${name} ${typeOf(schema)}\n`,
  );
  const headers = Object.entries(document.components.securitySchemes).map(
    ([scheme, { name }]) => `        ${literal(scheme)} => ${literal(name)},\n`,
  );
  return `<?php

declare(strict_types=1);

namespace Vodbox;

/**
 * The operations of the API, generated from its OpenAPI document.
 *
${types.join("")} */
abstract class Operations
{
    protected const SECURITY_HEADERS = [
${headers.join("")}    ];

    /**
     * Sends a request, and returns the JSON or text of its response; null without a body.
     *
     * @param array<string, mixed> $options
     */
    abstract public function request(string $method, string $path, array $options = []): mixed;

    /** @param array<string, mixed> $options */
    abstract protected function records(string $path, array $options): Records;

    /** A key that no other request has. */
    public static function newKey(): string
    {
        return bin2hex(random_bytes(16));
    }

    /** One segment of a path. */
    protected static function segment(int|string $value): string
    {
        $text = (string) $value;
        if (in_array($text, ['', '.', '..'], true)) {
            throw new \\InvalidArgumentException(var_export($text, true) . ' is not an id.');
        }
        return rawurlencode($text);
    }
${methods.join("")}}
`;
}

function methodOf(method: string, path: string, operation: Operation): string {
  const { parameters = [], requestBody } = operation;
  const query = parameters.filter((each) => each.in === "query");
  const headers = parameters.filter((each) => each.in === "header");
  const isList = query.some(({ name }) => name === "cursor");
  const body = requestBody ? bodyOf(requestBody) : { args: [], options: [] };
  const isRequired = ({ required }: Parameter) => required === true;
  const args: Argument[] = [
    ...parameters.filter((each) => each.in === "path").map(inPath),
    ...body.args,
    ...(query.length > 0 ? [queryArgument(query)] : []),
    ...headers.map(headerArgument),
    ...tokensOf(operation).map((name) => ({ name, type: "string", documented: "string" })),
  ];
  // PHP wants those with a default last; names may be given in any order.
  const ordered = [
    ...args.filter(({ value }) => value === undefined),
    ...args.filter(({ value }) => value !== undefined),
  ];
  const options = [
    `'auth' => ${authOf(operation)}`,
    ...(query.length > 0 ? [`'query' => $query`] : []),
    ...headersOf(headers),
    ...tokensOf(operation).map((name) => `'tokens' => [${literal(name)} => $${name}]`),
    ...body.options,
  ];
  const result = isList ? { type: "Records", documented: `Records<${itemOf(operation)}>` } : resultOf(operation);
  const sent = `[${options.join(", ")}]`;
  const call = isList
    ? `$this->records(${pathOf(path)}, ${sent})`
    : `$this->request(${literal(method)}, ${pathOf(path)}, ${sent})`;
  if (query.some(isRequired) && isList) throw new Error(`${operation.operationId}: a list with required parameters.`);
  return `
    /**
${documentation(operation, ordered, result.documented)}     */
    public function ${operation.operationId}(${ordered.map(declared).join(", ")}): ${result.type}
    {
        ${result.type === "void" ? "" : "return "}${call};
    }
`;
}

const declared = ({ name, type, value }: Argument) => `${type} $${name}${value === undefined ? "" : ` = ${value}`}`;

function documentation({ summary, description }: Operation, args: Argument[], result: string): string {
  const lines = [
    `${summary}.`,
    "",
    ...(description ? [...description.split("\n"), ""] : []),
    ...args.map(({ name, documented, description }) =>
      `@param ${documented} $${name} ${description?.replaceAll("\n", " ") ?? ""}`.trimEnd(),
    ),
    ...(result === "void" ? [] : [`@return ${result}`]),
    "@throws VodboxException",
  ];
  // The end of a comment would end this one.
  return lines
    .map((line) => `     * ${line}`.trimEnd().replaceAll("*/", "* /"))
    .join("\n")
    .concat("\n");
}

/** `X-SVC-JOB-ATTEMPT-ID` → `jobAttemptId`, `upload_id` → `uploadId`. */
const camelCase = (name: string) =>
  name
    .replace(/^X-(SVC-)?/, "")
    .toLowerCase()
    .replace(/[^a-z0-9]+([a-z0-9])/g, (_, first: string) => first.toUpperCase());

const inPath = ({ name, description }: Parameter): Argument => ({
  name: camelCase(name),
  type: "int|string",
  documented: "int|string",
  description,
});

const headerArgument = ({ name, required, description }: Parameter): Argument => ({
  name: camelCase(name),
  ...(required ? { type: "int|string", documented: "int|string" } : optional("string")),
  description,
});
const optional = (type: string) => ({ type: `?${type}`, documented: `${type}|null`, value: "null" });

function queryArgument(query: Parameter[]): Argument {
  const shape: Schema = {
    type: "object",
    properties: Object.fromEntries(query.map(({ name, schema }) => [name, schema])),
    required: query.filter(({ required }) => required).map(({ name }) => name),
  };
  const isOptional = !query.some(({ required }) => required);
  const about = query.flatMap(({ name, description }) => (description ? [`${name}: ${description}`] : []));
  return {
    name: "query",
    type: "array",
    documented: typeOf(shape),
    ...(isOptional && { value: "[]" }),
    description: about.join("; "),
  };
}

const IDEMPOTENCY_KEY = "Idempotency-Key";

function headersOf(headers: Parameter[]): string[] {
  const others = headers.filter(({ name }) => name !== IDEMPOTENCY_KEY);
  const entries = others.map(({ name }) => `${literal(name)} => $${camelCase(name)}`);
  return [
    ...(entries.length > 0 ? [`'headers' => [${entries.join(", ")}]`] : []),
    ...(others.length < headers.length
      ? [`'idempotency_key' => $${camelCase(IDEMPOTENCY_KEY)} ?? self::newKey()`]
      : []),
  ];
}

/** Tokens that belong to one call, such as that of a job's lease. */
const tokensOf = ({ security = [] }: Operation) =>
  [...new Set(security.flatMap((each) => Object.keys(each)))].filter((scheme) => scheme === "leaseToken");

const authOf = ({ security = [] }: Operation) =>
  `[${security.map((each) => `[${Object.keys(each).map(literal).join(", ")}]`).join(", ")}]`;

const pathOf = (path: string) =>
  path
    .split(/\{([^}]+)\}/)
    .map((part, index) => (index % 2 === 0 ? part && literal(part) : `self::segment($${camelCase(part)})`))
    .filter((part) => part !== "")
    .join(" . ");

function bodyOf({ required, content }: NonNullable<Operation["requestBody"]>): Body {
  const json = content[JSON_TYPE]?.schema;
  const raw = Object.keys(content).filter((type) => type !== JSON_TYPE && type !== FORM_TYPE);
  if (json && raw.length > 0) return jsonOrRaw(json, raw);
  if (json) {
    const isOptional = !required || (json.properties !== undefined && (json.required ?? []).length === 0);
    const argument = { name: "body", type: json.properties || json.type === "object" ? "array" : "mixed" };
    const documented = typeOf(json);
    const value = isOptional && argument.type === "array" ? { value: "[]" } : isOptional ? { value: "null" } : {};
    return {
      args: [{ ...argument, documented, ...value, description: describedFields(json) }],
      options: [`'json' => ${argument.type === "array" ? "(object) " : ""}$body`],
    };
  }
  if (raw.length > 0)
    return { args: [CONTENT], options: [`'content' => $content, 'content_type' => ${literal(raw[0] as string)}`] };
  const form = content[FORM_TYPE]?.schema;
  if (!form?.properties) throw new Error(`A request body of ${Object.keys(content)} is not supported.`);
  const files = Object.entries(form.properties).filter(([, { format }]) => format === "binary");
  const documented = files.reduce(
    (text, [name]) => text.replace(`${name}: string`, `${name}: string|resource`),
    typeOf(form),
  );
  return {
    args: [{ name: "fields", type: "array", documented, description: describedFields(form) }],
    options: [`'form' => $fields, 'files' => [${files.map(([name]) => literal(name)).join(", ")}]`],
  };
}

const CONTENT: Argument = {
  name: "content",
  type: "mixed",
  documented: "string|resource",
  description: "The bytes, or a file that is open for reading.",
};

const describedFields = ({ properties = {}, description }: Schema) =>
  [
    ...(description ? [description] : []),
    ...Object.entries(properties).flatMap(([name, field]) =>
      field.description ? [`${name}: ${field.description}`] : [],
    ),
  ].join("; ");

/** Either fields or bytes. */
function jsonOrRaw(json: Schema, types: string[]): Body {
  return {
    args: [
      {
        name: "body",
        type: "mixed",
        documented: `${typeOf(json)}|string|resource`,
        description: "Fields; or bytes, or a file that is open for reading, of the type $contentType.",
      },
      {
        name: "contentType",
        type: "string",
        documented: types.map(literal).join("|"),
        value: literal(types[0] as string),
      },
    ],
    options: [
      "...(is_array($body) ? ['json' => (object) $body] : ['content' => $body, 'content_type' => $contentType])",
    ],
  };
}

const successes = ({ responses }: Operation) => Object.entries(responses).filter(([status]) => status.startsWith("2"));

function itemOf(operation: Operation): string {
  const content = successes(operation)[0]?.[1].content;
  return typeOf(content?.[JSON_TYPE]?.schema.items ?? {});
}

function resultOf(operation: Operation): { type: string; documented: string } {
  const found = successes(operation).flatMap(([, { content }]) =>
    content
      ? Object.entries(content).map(([type, { schema }]) => (type === JSON_TYPE ? typeOf(schema) : "string"))
      : ["null"],
  );
  const all = [...new Set(found)];
  if (all.every((each) => each === "null")) return { type: "void", documented: "void" };
  const isArray = (type: string) => /^(list<|array[<{])/.test(type) || /^[A-Z]\w*$/.test(type);
  const native = [
    ...new Set(
      all.map((each) => (each === "null" ? "null" : each === "string" ? "string" : isArray(each) ? "array" : "mixed")),
    ),
  ];
  return { type: native.includes("mixed") ? "mixed" : native.join("|"), documented: all.join("|") };
}
