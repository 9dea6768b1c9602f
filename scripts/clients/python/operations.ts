import type { Content, Document, Operation, Parameter, Schema } from "../schema.ts";
import { docstring, literal, pascalCase, snakeCase } from "./names.ts";
import type { TypeWriter } from "./types.ts";

/** A parameter of a method. `value` is its default as an expression. */
type Argument = { name: string; type: string; value?: string; description: string | undefined };
type Body = { args: Argument[]; send: string[] };

const JSON_TYPE = "application/json";
const FORM_TYPE = "multipart/form-data";

/** The module with one method for each operation. */
export function operationsModule(document: Document, types: TypeWriter): string {
  const methods = Object.entries(document.paths).flatMap(([path, operations]) =>
    Object.entries(operations).map(([method, operation]) => methodOf(method.toUpperCase(), path, operation, types)),
  );
  const headers = Object.entries(document.components.securitySchemes).map(
    ([scheme, { name }]) => `        ${literal(scheme)}: ${literal(name)},\n`,
  );
  return `"""The operations of the API, generated from its OpenAPI document."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, Literal, Optional, Union, cast

from .models import (
${[...types.names].map((name) => `    ${name},\n`).join("")})
from .pagination import Page, Records
from .parameters import NOT_GIVEN, FileContent, NotGiven, body_of, form_of, given, new_idempotency_key, segment


class Operations(ABC):
    """One method for each operation of the API."""

    security_headers: Mapping[str, str] = {
${headers.join("")}    }

    @abstractmethod
    def request(self, method: str, path: str, **options: Any) -> Any:
        """Send a request and return the body of its response."""

    @abstractmethod
    def _page(self, path: str, query: Mapping[str, Any], cursor: Optional[str], **options: Any) -> Page[Any]:
        """Request one page of a list."""
${methods.join("")}`;
}

function methodOf(method: string, path: string, operation: Operation, types: TypeWriter): string {
  const { parameters = [] } = operation;
  const title = pascalCase(operation.operationId);
  const inPath = parameters.filter((each) => each.in === "path");
  const query = parameters.filter((each) => each.in === "query");
  const isList = query.some(({ name }) => name === "cursor");
  const body = operation.requestBody ? bodyOf(operation.requestBody, title, types) : { args: [], send: [] };
  const positional = inPath.map((each) => argument(each, title, types));
  const headers = parameters.filter((each) => each.in === "header");
  const keyed = [
    ...query.map((each) => argument(isList ? pageParameter(each) : each, title, types)),
    ...body.args,
    ...headers.map((each) => argument(each, title, types)),
    ...tokensOf(operation).map((scheme) => tokenArgument(scheme)),
  ];
  const result = resultOf(operation, title, isList, types);
  const call = isList
    ? listCall(path, query, operation)
    : `self.request(\n${[
        ...[literal(method), pathOf(path), `auth=${authOf(operation)}`],
        ...(query.length > 0 ? [`query=${queryOf(query)}`] : []),
        ...headersOf(headers),
        ...tokensArgument(operation),
        ...(returnsText(operation) ? ["returns_text=True"] : []),
        ...body.send,
      ]
        .map((line) => `            ${line},\n`)
        .join("")}        )`;
  return [
    `\n    def ${snakeCase(operation.operationId)}(\n        self,\n`,
    ...positional.map(declared),
    keyed.length > 0 ? "        *,\n" : "",
    ...keyed.map(declared),
    `    ) -> ${result}:\n`,
    docstring(documentation(operation, [...positional, ...keyed]), "        "),
    result === "None" ? `        ${call}\n` : `        return ${castTo(result, call)}\n`,
  ].join("");
}

const castTo = (result: string, call: string) =>
  result === "Any" || result.startsWith("Records[") ? call : `cast(${literal(result)}, ${call})`;

const declared = ({ name, type, value }: Argument) =>
  `        ${name}: ${type}${value === undefined ? "" : ` = ${value}`},\n`;

function documentation({ summary, description }: Operation, all: Argument[]): string[] {
  const described = all.flatMap(({ name, description }) => (description ? [`- \`${name}\`: ${description}`] : []));
  return [
    `${summary}.`,
    ...(description ? ["", ...description.split("\n")] : []),
    ...(described.length > 0 ? ["", ...described] : []),
  ];
}

/** A method for a list returns all pages. */
const PAGING: Record<string, string> = {
  limit: "Records per page",
  cursor: "Where to continue: `next_cursor` of an earlier page",
};
const pageParameter = (parameter: Parameter): Parameter => ({
  ...parameter,
  description: PAGING[parameter.name] ?? parameter.description,
});

/** `X-SVC-JOB-ATTEMPT-ID` → `job_attempt_id`. */
const argumentName = ({ name, in: place }: Parameter) =>
  snakeCase(place === "header" ? name.replace(/^X-(SVC-)?/, "") : name);

function argument(parameter: Parameter, title: string, types: TypeWriter): Argument {
  const { name, required, description, schema } = parameter;
  const type = types.typeOf(schema, title + pascalCase(name), name);
  const named = { name: argumentName(parameter), description };
  // A text in a path is a number or another id.
  if (parameter.in === "path" && type === "str") return { ...named, type: "Union[str, int]" };
  if (required) return { ...named, type };
  return { ...named, type: `Optional[${type}]`, value: "None" };
}

/** Tokens that belong to one call, such as that of a job's lease. */
const tokensOf = ({ security = [] }: Operation) =>
  [...new Set(security.flatMap((each) => Object.keys(each)))].filter((scheme) => scheme === "leaseToken");
const tokenArgument = (scheme: string): Argument => ({ name: snakeCase(scheme), type: "str", description: undefined });
const tokensArgument = (operation: Operation) => {
  const entries = tokensOf(operation).map((scheme) => `${literal(scheme)}: ${snakeCase(scheme)}`);
  return entries.length > 0 ? [`tokens={${entries.join(", ")}}`] : [];
};

const pathOf = (path: string) =>
  path.includes("{")
    ? `f${literal(path.replace(/\{([^}]+)\}/g, (_, name) => `{segment(${snakeCase(name)})}`))}`
    : literal(path);

const authOf = ({ security = [] }: Operation) =>
  tuple(security.map((each) => tuple(Object.keys(each).map((scheme) => literal(scheme)))));
const tuple = (items: string[]) => (items.length === 1 ? `(${items[0]},)` : `(${items.join(", ")})`);

const queryOf = (query: Parameter[]) =>
  `{${query.map((each) => `${literal(each.name)}: ${argumentName(each)}`).join(", ")}}`;

function headersOf(headers: Parameter[]): string[] {
  const others = headers.filter(({ name }) => name !== "Idempotency-Key");
  return [
    ...(others.length > 0 ? [`headers=${queryOf(others)}`] : []),
    ...(others.length < headers.length ? ["idempotency_key=idempotency_key or new_idempotency_key()"] : []),
  ];
}

function listCall(path: string, query: Parameter[], operation: Operation): string {
  const others = query.filter(({ name }) => name !== "cursor");
  return `Records(
            lambda cursor: self._page(${pathOf(path)}, ${queryOf(others)}, cursor, auth=${authOf(operation)}), cursor
        )`;
}

function resultOf({ responses }: Operation, title: string, isList: boolean, types: TypeWriter): string {
  const good = Object.entries(responses).filter(([status]) => status.startsWith("2"));
  const found = good.map(([, { content }]) => {
    if (!content) return "None";
    const all = Object.values(content).map(({ schema }) => types.typeOf(schema, `${title}Response`));
    return all.length === 1 ? (all[0] as string) : `Union[${all.join(", ")}]`;
  });
  if (isList) return (found[0] as string).replace(/^list\[/, "Records[");
  const results = [...new Set(found)];
  const bodies = results.filter((each) => each !== "None");
  if (bodies.length === 0) return "None";
  const type = bodies.length === 1 ? (bodies[0] as string) : `Union[${bodies.join(", ")}]`;
  return bodies.length < results.length ? `Optional[${type}]` : type;
}

const returnsText = ({ responses }: Operation) =>
  Object.entries(responses).some(
    ([status, { content = {} }]) => status.startsWith("2") && Object.keys(content).some((type) => type !== JSON_TYPE),
  );

function bodyOf({ required, content }: NonNullable<Operation["requestBody"]>, title: string, types: TypeWriter): Body {
  const json = content[JSON_TYPE]?.schema;
  const raw = Object.keys(content).filter((type) => type !== JSON_TYPE && type !== FORM_TYPE);
  if (json) {
    const body = jsonBody(json, required ?? false, title, types);
    return raw.length > 0 && json.properties ? jsonOrRaw(body, raw) : body;
  }
  return raw.length > 0 ? rawBody(raw[0] as string) : formBody(content, title, types);
}

function fieldArguments({ properties = {}, required = [] }: Schema, title: string, types: TypeWriter): Argument[] {
  const all = Object.entries(properties).map(([field, schema]): Argument => {
    const isFile = schema.format === "binary";
    const type = isFile ? "FileContent" : types.typeOf(schema, title + pascalCase(field), field);
    const named = { name: snakeCase(field), description: schema.description };
    if (required.includes(field)) return { ...named, type };
    const inner = /^Optional\[(.*)\]$/.exec(type)?.[1];
    return { ...named, type: `Union[${inner ? `${inner}, None` : type}, NotGiven]`, value: "NOT_GIVEN" };
  });
  return all;
}

const fieldsOf = ({ properties = {} }: Schema) =>
  `{${Object.keys(properties)
    .map((field) => `${literal(field)}: ${snakeCase(field)}`)
    .join(", ")}}`;

function jsonBody(schema: Schema, isRequired: boolean, title: string, types: TypeWriter): Body {
  if (schema.properties)
    return { args: fieldArguments(schema, title, types), send: [`json=given(${fieldsOf(schema)})`] };
  const type = types.typeOf(schema, `${title}Request`);
  const description = schema.description ?? "Request body";
  return isRequired
    ? { args: [{ name: "body", type, description }], send: ["json=body"] }
    : { args: [{ name: "body", type: `Optional[${type}]`, value: "None", description }], send: ["json=body"] };
}

const contentArgument = (description: string): Argument => ({ name: "content", type: "FileContent", description });

function rawBody(type: string): Body {
  return {
    args: [contentArgument("The bytes, or a file that is open for reading bytes")],
    send: [`**body_of(content, ${literal(type)})`],
  };
}

/** Either fields or bytes. */
function jsonOrRaw({ args, send }: Body, raw: string[]): Body {
  const content = contentArgument("Instead of the fields: bytes, or a file that is open for reading bytes");
  const optional = args.map((each) =>
    each.value ? each : { ...each, type: `Union[${each.type}, NotGiven]`, value: "NOT_GIVEN" },
  );
  const kind = { type: `Literal[${raw.map(literal).join(", ")}]`, value: literal(raw[0]) };
  return {
    args: [
      ...optional,
      { ...content, type: "Optional[FileContent]", value: "None" },
      { name: "content_type", description: "The media type of `content`", ...kind },
    ],
    send: [`**(body_of(content, content_type) if content is not None else {${send.map(asEntry).join(", ")}})`],
  };
}
const asEntry = (argument: string) => argument.replace(/^(\w+)=/, '"$1": ');

function formBody(content: Content, title: string, types: TypeWriter): Body {
  const schema = content[FORM_TYPE]?.schema;
  if (!schema?.properties) throw new Error(`${title}: a request body of ${Object.keys(content)} is not supported.`);
  const files = Object.entries(schema.properties).filter(([, { format }]) => format === "binary");
  const names = files.map(([name]) => literal(name));
  return { args: fieldArguments(schema, title, types), send: [`**form_of(${fieldsOf(schema)}, ${tuple(names)})`] };
}
