import type { Tool } from "@modelcontextprotocol/server";
import { describeProperties } from "#platform/http/openapi-describe.ts";
import { type Json, schemaOf } from "#platform/http/openapi-schema.ts";
import { isBodyRequired, type Route } from "#platform/http/route.ts";
import { HINTS, PRIMARY } from "./hints.ts";

/** Lists return so many records unless the caller asks for more: an agent reads all of what it gets. */
export const DEFAULT_LIMIT = 20;

/** Where an argument of a tool goes in the request. */
type Place = "path" | "query" | "body";

export type ApiTool = {
  tool: Tool;
  operationId: string;
  tag: string;
  scopes: readonly string[];
  /** The operation behind it. */
  route: Route;
  isPrimary: boolean;
  /** The request for these arguments. Throws TypeError for an argument that is missing in the path, or unknown. */
  request(args: Json): ApiRequest;
};
type ApiRequest = { method: string; path: string; body: Json | FormData | undefined };

/** Throws TypeError for a value that would change the path, and so the operation. */
function pathSegment(name: string, value: string): string {
  if (["", ".", ".."].includes(value)) throw new TypeError(`${name} is not valid.`);
  return encodeURIComponent(value);
}

/** `listAssets` is `list_assets`. */
const snakeCase = (name: string) => name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);

/** OpenAPI 3.0 to JSON Schema (2020-12): `nullable` becomes a type. */
function asJsonSchema(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(asJsonSchema);
  if (typeof schema !== "object" || schema === null) return schema;
  const { nullable, example: _, ...rest } = schema as Json;
  const inner: Json = Object.fromEntries(Object.entries(rest).map(([name, value]) => [name, asJsonSchema(value)]));
  if (nullable !== true) return inner;
  if (typeof inner.type === "string") return { ...inner, type: [inner.type, "null"] };
  return { anyOf: [inner, { type: "null" }] };
}

type Properties = { properties?: Record<string, Json>; required?: string[] };

/** The argument for a body without named fields. */
const VALUES = "values";
/** Files of forms are texts, such as subtitles, which an agent can write. */
const TEXT_FILE: Json = { type: "string", description: "Content of the file" };

/** The body of a route as JSON; undefined where it has none, and null where it can only be something else. */
function jsonBodyOf({ body, raw, rawBody }: Route): Route["body"] | null {
  if (raw || rawBody) return rawBody?.["application/json"] ?? null;
  return body;
}

function formOf(fields: Json): FormData {
  const form = new FormData();
  for (const [name, value] of Object.entries(fields)) {
    const text = typeof value === "string" ? value : JSON.stringify(value);
    if (name === "file") form.append(name, new Blob([text]), "file");
    else form.append(name, text);
  }
  return form;
}

/** A route that an agent can call with arguments alone, whose response it can read, with an API key. */
function isCallable(route: Route): boolean {
  const { hidden, credential, batchToken, produces, operationId } = route;
  if (operationId === undefined || hidden || batchToken || credential !== "key") return false;
  return jsonBodyOf(route) !== null && (produces ?? []).every((type) => type === "text/plain");
}

function toolOf(route: Route): ApiTool {
  const { method, path, summary, tag, operationId = "", scopes } = route;
  const places = new Map<string, Place>();
  const properties: Record<string, Json> = {};
  const required: string[] = [];
  const add = (place: Place, schema: Properties, isRequired: (name: string) => boolean) => {
    for (const [name, property] of Object.entries(schema.properties ?? {})) {
      if (places.has(name)) continue;
      places.set(name, place);
      const { title: _, ...rest } = property;
      properties[name] = rest;
      if (isRequired(name)) required.push(name);
    }
  };
  const of = (schema: Route["body"]) => (schema ? (describeProperties(schemaOf(schema)) as Properties) : {});
  add("path", of(route.params), () => true);
  const query = of(route.query);
  add("query", query, (name) => query.required?.includes(name) ?? false);
  const json = jsonBodyOf(route) ?? undefined;
  const body = of(json);
  // A body of any names, such as tags.
  const isOpen = json !== undefined && body.properties === undefined;
  if (isOpen) {
    const { title: _, ...values } = body as Json;
    body.properties = { [VALUES]: { ...values, description: "Names and values" } };
    body.required = [VALUES];
  }
  if (route.form) body.properties = { ...body.properties, file: TEXT_FILE };
  const isRequired = isBodyRequired({ ...route, body: json });
  add("body", body, (name) => isRequired && (body.required?.includes(name) ?? false));
  const isRead = method === "GET" || route.reads === true;
  const inputSchema = asJsonSchema({ type: "object", properties, required, additionalProperties: false });
  return {
    operationId,
    tag,
    scopes,
    route,
    isPrimary: PRIMARY.includes(operationId),
    tool: {
      name: snakeCase(operationId),
      title: summary,
      description: describe(route, properties),
      inputSchema: inputSchema as Tool["inputSchema"],
      annotations: {
        title: summary,
        readOnlyHint: isRead,
        destructiveHint: !isRead && (method === "DELETE" || DESTRUCTIVE.test(operationId)),
        idempotentHint: isRead || method === "DELETE" || method === "PUT",
        openWorldHint: false,
      },
    },
    request(args) {
      let filled = path;
      const search = new URLSearchParams();
      const sent: Json = {};
      if (places.get("limit") === "query" && args.limit === undefined) search.set("limit", String(DEFAULT_LIMIT));
      for (const [name, value] of Object.entries(args)) {
        const place = places.get(name);
        if (place === undefined)
          throw new TypeError(
            `${name} is not an argument of ${snakeCase(operationId)}; it has ${[...places.keys()].join(", ") || "none"}.`,
          );
        if (place === "body" && isOpen) Object.assign(sent, value);
        else if (place === "body") sent[name] = value;
        else if (place === "query") search.set(name, typeof value === "string" ? value : JSON.stringify(value));
        else filled = filled.replace(`:${name}`, pathSegment(name, String(value)));
      }
      const missing = /:(\w+)/.exec(filled)?.[1];
      if (missing !== undefined) throw new TypeError(`${missing} is required.`);
      const hasBody = json !== undefined && (method !== "GET" || Object.keys(sent).length > 0);
      const content = route.form ? formOf(sent) : sent;
      return { method, path: search.size > 0 ? `${filled}?${search}` : filled, body: hasBody ? content : undefined };
    },
  };
}

/** Operations that end or replace something without being a DELETE. */
const DESTRUCTIVE = /^(abort|cancel|changeAssets|delete|end|erase|revoke|rotate|trim)/;

function describe({ summary, operationId = "", expensive, scopes }: Route, properties: Record<string, Json>): string {
  const parts = [`${summary}.`];
  const hint = HINTS[operationId];
  if (hint !== undefined) parts.push(hint);
  if ("cursor" in properties)
    parts.push(
      `Returns ${DEFAULT_LIMIT} records unless limit says more; next_cursor, if any, is the cursor of the next page.`,
    );
  if (expensive !== undefined) parts.push("This may take some seconds.");
  if (scopes.length > 0) parts.push(`Scope: ${scopes.join(" or ")}.`);
  return parts.join(" ");
}

/**
 * The tool for a caller of one tenant, which it need not name: the API requires the tenant in some requests, and an agent does not
 * know its own.
 */
export function ofTenant(one: ApiTool, tenantId: number): ApiTool {
  const { properties = {}, required = [], ...schema } = one.tool.inputSchema as Properties & Tool["inputSchema"];
  const { [TENANT]: tenant, ...others } = properties;
  if (!tenant) return one;
  const inputSchema = { ...schema, properties: others, required: required.filter((name) => name !== TENANT) };
  const isRequired = required.includes(TENANT);
  return {
    ...one,
    tool: { ...one.tool, inputSchema: inputSchema as Tool["inputSchema"] },
    request: (args) => one.request(isRequired ? { [TENANT]: tenantId, ...args } : args),
  };
}
const TENANT = "tenant_id";

/** The tools of a route table, in its order. Yields after each: all of them take some milliseconds. */
export async function toolsOf(routes: readonly Route[]): Promise<ApiTool[]> {
  const tools: ApiTool[] = [];
  for (const route of routes) {
    if (!isCallable(route)) continue;
    tools.push(toolOf(route));
    await new Promise<void>((resolve) => setImmediate(resolve));
  }
  return tools;
}
