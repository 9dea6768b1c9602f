import type { Document, Operation, Parameter, Schema } from "../schema.ts";
import { comment, exported, parameter } from "./names.ts";
import { TypeWriter } from "./types.ts";

const JSON_TYPE = "application/json";
const FORM_TYPE = "multipart/form-data";
/** Names of the hand-written files. */
const TAKEN =
  "Client Config Error AssetFailed Content Nullable Records Page RequestOption UploadOptions TokenOptions".split(" ");

type Body = { args: string[]; fields: string[]; about: string[] };

/** `operations.go`: one method for each operation, and the types of all records. */
export function operationsFile(document: Document): string {
  const types = new TypeWriter(document.components.schemas, TAKEN);
  const methods = Object.entries(document.paths).flatMap(([path, operations]) =>
    Object.entries(operations).map(([method, operation]) => methodOf(method.toUpperCase(), path, operation, types)),
  );
  const longest = Math.max(...Object.keys(document.components.securitySchemes).map(({ length }) => length));
  const headers = Object.entries(document.components.securitySchemes).map(
    // As wide as gofmt writes them.
    ([scheme, { name }]) => `\t${`${quoted(scheme)}:`.padEnd(longest + 4)}${quoted(name)},\n`,
  );
  return `// Code generated from the OpenAPI document of vodbox. DO NOT EDIT.

package vodbox

import (
	"context"
	"encoding/json"
)

// Some documents have no field that stays JSON.
type _ = json.RawMessage

var securityHeaders = map[string]string{
${headers.join("")}}

${types.text()}
${methods.join("\n")}`;
}

const quoted = (text: string) => JSON.stringify(text);

function methodOf(method: string, path: string, operation: Operation, types: TypeWriter): string {
  const { parameters = [], requestBody } = operation;
  const title = exported(operation.operationId);
  const query = parameters.filter((each) => each.in === "query");
  const headers = parameters.filter(({ in: place, name }) => place === "header" && name !== "Idempotency-Key");
  const isList = query.some(({ name }) => name === "cursor");
  const isKeyed = parameters.some(({ name }) => name === "Idempotency-Key");
  const body = requestBody ? bodyOf(requestBody, title, types) : { args: [], fields: [], about: [] };
  const inPath = parameters.filter((each) => each.in === "path");
  const tokens = tokensOf(operation);
  const args = [
    ...(isList ? [] : ["ctx context.Context"]),
    ...inPath.map(({ name }) => `${parameter(name)} string`),
    ...body.args,
    ...(query.length > 0 ? [`query *${queryType(query, title, types)}`] : []),
    ...headers.map((each) => `${headerName(each)} ${each.required ? "string" : "*string"}`),
    ...tokens.map((name) => `${name} string`),
    "options ...RequestOption",
  ];
  const fields = [
    `method: ${quoted(method)}, path: ${pathOf(path)}, auth: ${authOf(operation)}`,
    ...(query.length > 0 ? ["query: query"] : []),
    ...(headers.length > 0
      ? [
          `headers: map[string]*string{${headers.map((each) => `${quoted(each.name)}: ${each.required ? "&" : ""}${headerName(each)}`).join(", ")}}`,
        ]
      : []),
    ...(tokens.length > 0
      ? [`tokens: map[string]string{${tokens.map((name) => `${quoted(name)}: ${name}`).join(", ")}}`]
      : []),
    ...(isKeyed ? ["isKeyed: true"] : []),
    ...body.fields,
  ];
  const request = `&request{${fields.join(", ")}, options: options}`;
  const about = comment(
    [`${title}: ${lowerFirst(operation.summary)}.`, operation.description, ...body.about, ...describedHeaders(headers)]
      .filter(Boolean)
      .join("\n\n"),
  );
  if (isList) {
    const item = itemOf(operation, title, types);
    return `${about}
func (c *Client) ${title}(${args.join(", ")}) *Records[${item}] {
	var cursor *string
	if query != nil {
		cursor = query.Cursor
	}
	return newRecords[${item}](c, ${request}, cursor)
}
`;
  }
  const result = resultOf(operation, title, types);
  const returned = result === "" ? "error" : `(${result}, error)`;
  const call = result === "" ? `call[any](ctx, c, ${request})` : `call[${result}](ctx, c, ${request})`;
  return `${about}
func (c *Client) ${title}(${args.join(", ")}) ${returned} {
	${result === "" ? `_, err := ${call}\n\treturn err` : `return ${call}`}
}
`;
}

const lowerFirst = (text: string) => (/^[A-Z][a-z]/.test(text) ? text.charAt(0).toLowerCase() + text.slice(1) : text);

const describedHeaders = (headers: Parameter[]) =>
  headers.flatMap((each) => (each.description ? [`${headerName(each)}: ${each.description}`] : []));

const headerName = ({ name }: Parameter) => parameter(name.replace(/^X-(SVC-)?/, "").toLowerCase());

/** Tokens that belong to one call, such as that of a job's lease. */
const tokensOf = ({ security = [] }: Operation) =>
  [...new Set(security.flatMap((each) => Object.keys(each)))].filter((scheme) => scheme === "leaseToken");

function queryType(query: Parameter[], title: string, types: TypeWriter): string {
  const properties = Object.fromEntries(
    query.map(({ name, schema, description }) => [name, { ...schema, ...(description && { description }) }]),
  );
  const required = query.filter((each) => each.required).map(({ name }) => name);
  return types.struct(`${title}Query`, { type: "object", properties, required }, "received");
}

const authOf = ({ security = [] }: Operation) =>
  `[][]string{${security.map((each) => `{${Object.keys(each).map(quoted).join(", ")}}`).join(", ")}}`;

const pathOf = (path: string) =>
  `[]string{${path
    .split(/\{([^}]+)\}/)
    .map((part, index) => (index % 2 === 0 ? quoted(part) : parameter(part)))
    .join(", ")}}`;

function bodyOf({ required, content }: NonNullable<Operation["requestBody"]>, title: string, types: TypeWriter): Body {
  const json = content[JSON_TYPE]?.schema;
  const raw = Object.keys(content).filter((type) => type !== JSON_TYPE && type !== FORM_TYPE);
  const form = content[FORM_TYPE]?.schema;
  const struct = (schema: Schema) => types.struct(`${title}Body`, schema, "sent");
  if (json?.properties && raw.length > 0)
    return {
      args: [`body *${struct(json)}`, "content *Content"],
      fields: ["json: body, content: content"],
      about: [`Either body or content is nil. Types of content: ${raw.join(", ")}.`],
    };
  if (json?.properties && Object.keys(json.properties).length > 0) {
    const isOptional = !required || (json.required ?? []).length === 0;
    return { args: [`body ${isOptional ? "*" : ""}${struct(json)}`], fields: ["json: body"], about: [] };
  }
  if (json) return { args: [`body ${types.typeOf(json, `${title}Body`, "sent")}`], fields: ["json: body"], about: [] };
  const [type] = raw;
  if (type)
    return { args: ["content Content"], fields: [`content: &content, contentType: ${quoted(type)}`], about: [] };
  if (!form) throw new Error(`A request body of ${Object.keys(content)} is not supported.`);
  return { args: [`body ${struct(form)}`], fields: ["form: body"], about: [] };
}

const successes = ({ responses }: Operation) => Object.entries(responses).filter(([status]) => status.startsWith("2"));

function itemOf(operation: Operation, title: string, types: TypeWriter): string {
  const content = successes(operation)[0]?.[1].content;
  return types.typeOf(content?.[JSON_TYPE]?.schema.items ?? {}, `${title}Item`);
}

/** Empty for none. Bytes where a response is not always JSON. */
function resultOf(operation: Operation, title: string, types: TypeWriter): string {
  const contents = successes(operation).map(([, { content }]) => content);
  const all = contents.flatMap((content) => Object.entries(content ?? {}));
  if (all.length === 0) return "";
  if (all.some(([type]) => type !== JSON_TYPE)) return "[]byte";
  const found = [...new Set(all.map(([, { schema }]) => JSON.stringify(schema)))];
  if (found.length > 1) return "any";
  const type = types.typeOf(JSON.parse(found[0] as string), `${title}Response`);
  // A record, which may be absent.
  return /^[A-Z]/.test(type) ? `*${type}` : type;
}
