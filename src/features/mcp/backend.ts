import type { CallToolResult, ReadResourceResult, Resource, Tool } from "@modelcontextprotocol/server";
import { forApp } from "#app.ts";
import type { Caller } from "#platform/http/caller.ts";
import { dispatch } from "#platform/http/dispatch.ts";
import type { Json } from "#platform/http/openapi-schema.ts";
import { roleRefusal } from "#platform/http/roles.ts";
import type { Context, Route } from "#platform/http/route.ts";
import type { McpBackend } from "./server.ts";
import { limited, shortened } from "./shorten.ts";
import { type ApiTool, toolsOf } from "./tools.ts";

/** Headers with the caller's credential, which its calls of the API carry. */
const CREDENTIALS = ["authorization", "x-api-key", "x-svc-admin-token", "cookie", "x-csrf-token"];
/** Assets that a client may list as resources; others are read by their URI. */
const LISTED_ASSETS = 50;
const ASSET_URI = /^vodbox:\/\/assets\/([\w-]{1,64})(\/transcript)?$/;

const tables = forApp((): { tools: Promise<ApiTool[]> | null } => ({ tools: null }));

const isAllowed = (caller: Caller, { scopes, route }: ApiTool): boolean => {
  if (caller.kind === "admin") return true;
  if (caller.kind !== "key") return false;
  const hasScope = scopes.length === 0 || scopes.some((scope) => caller.scopes.includes(scope));
  return hasScope && roleRefusal(route, caller, route.method) === null;
};

const LIST_OPERATIONS: Tool = {
  name: "list_operations",
  title: "List further operations",
  description:
    "List the operations that are not tools of their own, by topic, with their arguments. Run them with call_operation.",
  inputSchema: {
    type: "object",
    properties: { topic: { type: "string", description: "Part of a name, topic or summary; without it, names only" } },
    additionalProperties: false,
  },
  annotations: { readOnlyHint: true, destructiveHint: false, idempotentHint: true, openWorldHint: false },
};
const CALL_OPERATION: Tool = {
  name: "call_operation",
  title: "Call a further operation",
  description: "Call an operation that list_operations shows. Some of them delete or replace things.",
  inputSchema: {
    type: "object",
    properties: {
      name: { type: "string", description: "Name of the operation" },
      arguments: { type: "object", description: "Its arguments" },
    },
    required: ["name"],
    additionalProperties: false,
  },
  annotations: { readOnlyHint: false, destructiveHint: true, idempotentHint: false, openWorldHint: false },
};

const answer = (text: string, isError = false): CallToolResult => ({
  content: [{ type: "text", text }],
  ...(isError && { isError }),
});

/** What an agent with the credentials of a request can do: the API of the route table, as tools and resources. */
export function mcpBackend(
  { app, caller, headers, address }: Pick<Context, "app" | "caller" | "headers" | "address">,
  routes: readonly Route[],
): McpBackend {
  const table = tables(app);
  table.tools ??= toolsOf(routes);
  const allowed = async () => ((await table.tools) ?? []).filter((one) => isAllowed(caller, one));

  async function send(method: string, path: string, body?: Json): Promise<Response> {
    const own = new Headers(
      CREDENTIALS.flatMap((name) => (headers.has(name) ? [[name, headers.get(name) as string]] : [])),
    );
    if (body !== undefined) own.set("content-type", "application/json");
    const url = new URL(path, app.baseUrl());
    return dispatch(
      app,
      new Request(url, { method, headers: own, ...(body !== undefined && { body: JSON.stringify(body) }) }),
      address,
    );
  }

  async function run(one: ApiTool, args: Json): Promise<CallToolResult> {
    let request: ReturnType<ApiTool["request"]>;
    try {
      request = one.request(args);
    } catch (error) {
      if (!(error instanceof TypeError)) throw error;
      return answer(error.message, true);
    }
    const response = await send(request.method, request.path, request.body);
    const text = await response.text();
    if (!response.ok) return answer(limited(text), true);
    return answer(text === "" ? "Done." : shortened(JSON.parse(text), cursorOf(response.headers)));
  }

  return {
    async listTools() {
      const own = (await allowed()).filter(({ isPrimary }) => isPrimary).map(({ tool }) => tool);
      return [...own, LIST_OPERATIONS, CALL_OPERATION];
    },

    async callTool(name, args) {
      const own = await allowed();
      if (name === LIST_OPERATIONS.name) return answer(limited(operationsText(own, args.topic)));
      const wanted = name === CALL_OPERATION.name ? String(args.name) : name;
      const given = name === CALL_OPERATION.name ? (args.arguments ?? {}) : args;
      const one = own.find(({ tool }) => tool.name === wanted);
      if (!one)
        return answer(`There is no operation ${wanted} for these credentials; list_operations shows all.`, true);
      if (typeof given !== "object" || given === null || Array.isArray(given))
        return answer("arguments must be an object.", true);
      return run(one, given as Json);
    },

    async listResources() {
      const response = await send("GET", `/api/v1/assets?limit=${LISTED_ASSETS}`);
      if (!response.ok) return [];
      const assets = (await response.json()) as { id: number; title: string }[];
      return assets.map(
        ({ id, title }): Resource => ({ uri: `vodbox://assets/${id}`, name: title, mimeType: "application/json" }),
      );
    },

    async readResource(uri): Promise<ReadResourceResult | null> {
      const [, id, transcript] = ASSET_URI.exec(uri) ?? [];
      if (id === undefined) return null;
      const response = await send("GET", `/api/v1/assets/${id}${transcript ?? ""}`);
      if (!response.ok) return null;
      const mimeType = transcript ? "text/plain" : "application/json";
      return { contents: [{ uri, mimeType, text: limited(await response.text()) }] };
    },
  };
}

/** The cursor of the next page, from the Link header (RFC 8288). */
function cursorOf(headers: Headers): string | null {
  const link = headers.get("link") ?? "";
  if (!link.startsWith("<") || !link.endsWith('>; rel="next"')) return null;
  return new URL(link.slice(1, link.indexOf(">")), "http://localhost").searchParams.get("cursor");
}

function operationsText(tools: readonly ApiTool[], topic: unknown): string {
  const others = tools.filter(({ isPrimary }) => !isPrimary);
  if (typeof topic !== "string" || topic === "") return JSON.stringify(others.map(({ tool }) => tool.name));
  const word = topic.toLowerCase().slice(0, 100);
  const matches = others.filter(({ tool, tag }) => `${tool.name} ${tag} ${tool.title}`.toLowerCase().includes(word));
  return JSON.stringify(
    matches.map(({ tool, tag }) => ({
      name: tool.name,
      topic: tag,
      summary: tool.title,
      destructive: tool.annotations?.destructiveHint,
      arguments: tool.inputSchema,
    })),
  );
}
