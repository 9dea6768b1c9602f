import type { Tool } from "@modelcontextprotocol/server";
import { describeProperties } from "#platform/http/openapi-describe.ts";
import { type Json, schemaOf } from "#platform/http/openapi-schema.ts";
import { isBodyRequired, type Route } from "#platform/http/route.ts";

/** Lists return so many records unless the caller asks for more: an agent reads all of what it gets. */
export const DEFAULT_LIMIT = 20;

/** What an agent sees at once. Each further tool costs every client a part of its context; `call_operation` has the others. */
const PRIMARY: readonly string[] = [
  ...[
    "listAssets",
    "searchAssets",
    "getAsset",
    "updateAsset",
    "updateTags",
    "deleteAsset",
    "uploadFromUrl",
    "retryAsset",
  ],
  ...["getPlayback", "createClip", "trimAsset", "listCollections", "createCollection", "changeAssets"],
  ...["listSubtitles", "getSubtitle", "translateSubtitle", "listTracks", "setTrack"],
  ...["listJobs", "getAnalytics", "getAssetAnalytics", "getUsage"],
  ...["listChannels", "createChannel", "updateChannel", "createLiveClip", "listWebhooks", "createWebhook"],
];

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
  request(args: Json): { method: string; path: string; body: Json | undefined };
};

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

/** A route that an agent can call with arguments alone: JSON in and out, with an API key. */
const isCallable = ({ hidden, credential, form, raw, batchToken, rawBody, produces, operationId }: Route) =>
  operationId !== undefined && !(hidden || form || raw || batchToken || rawBody || produces) && credential === "key";

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
  const body = of(route.body);
  add("body", body, (name) => isBodyRequired(route) && (body.required?.includes(name) ?? false));
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
        if (place === "body") sent[name] = value;
        else if (place === "query") search.set(name, typeof value === "string" ? value : JSON.stringify(value));
        else filled = filled.replace(`:${name}`, pathSegment(name, String(value)));
      }
      const missing = /:(\w+)/.exec(filled)?.[1];
      if (missing !== undefined) throw new TypeError(`${missing} is required.`);
      const hasBody = route.body !== undefined && (method !== "GET" || Object.keys(sent).length > 0);
      return { method, path: search.size > 0 ? `${filled}?${search}` : filled, body: hasBody ? sent : undefined };
    },
  };
}

/** Operations that end or replace something without being a DELETE. */
const DESTRUCTIVE = /^(abort|cancel|changeAssets|delete|end|revoke|rotate|trim)/;

function describe({ summary, expensive, scopes }: Route, properties: Record<string, Json>): string {
  const parts = [`${summary}.`];
  if ("cursor" in properties)
    parts.push(
      `Returns ${DEFAULT_LIMIT} records unless limit says more; next_cursor, if any, is the cursor of the next page.`,
    );
  if (expensive !== undefined) parts.push("This may take some seconds.");
  if (scopes.length > 0) parts.push(`Scope: ${scopes.join(" or ")}.`);
  return parts.join(" ");
}

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
