import type { CallToolResult, ReadResourceResult, Resource, Tool } from "@modelcontextprotocol/server";
import { forApp } from "#app.ts";
import { pacer } from "#lib/base";
import { type Caller, ownerOf } from "#platform/http/caller.ts";
import { dispatch } from "#platform/http/dispatch.ts";
import type { Json } from "#platform/http/openapi-schema.ts";
import { roleRefusal } from "#platform/http/roles.ts";
import type { Context, Route } from "#platform/http/route.ts";
import { rankByWords } from "./rank.ts";
import type { McpBackend } from "./server.ts";
import { limited, shortened } from "./shorten.ts";
import { type ApiTool, ofTenant, toolsOf } from "./tools.ts";
import { WAIT, waitUntilReady } from "./wait.ts";

/** Headers with the caller's credential, which its calls of the API carry. */
const CREDENTIALS = ["authorization", "x-api-key", "x-svc-admin-token", "cookie", "x-csrf-token"];
/** Assets that a client may list as resources; others are read by their URI. */
const LISTED_ASSETS = 50;
/** Assets that are parsed at once for it: each has up to 100 KB of tags. */
const READ_AT_ONCE = 10;
/** Operations that `list_operations` returns for a topic; each is some hundred bytes. */
const MAX_FOUND = 8;
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
    "Find the operations that are not tools of their own, with their arguments: shares, webhooks, API keys, people, live streams and more. Run them with call_operation.",
  inputSchema: {
    type: "object",
    properties: {
      topic: { type: "string", description: "What to do, in plain words; without it, the names of all operations" },
    },
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
  context: Pick<Context, "app" | "caller" | "headers" | "address" | "signal">,
  routes: readonly Route[],
): McpBackend {
  const { app, caller, headers, address } = context;
  // Lists of up to 4 MiB are parsed, for several messages of a batch at once.
  const pace = pacer();
  const table = tables(app);
  table.tools ??= toolsOf(routes);
  const allowed = async () => {
    const tools = ((await table.tools) ?? []).filter((one) => isAllowed(caller, one));
    return caller.kind === "key" ? tools.map((one) => ofTenant(one, caller.tenantId)) : tools;
  };

  async function send(method: string, path: string, body?: Json | FormData): Promise<Response> {
    const own = new Headers(
      CREDENTIALS.flatMap((name) => (headers.has(name) ? [[name, headers.get(name) as string]] : [])),
    );
    const isForm = body instanceof FormData;
    if (body !== undefined && !isForm) own.set("content-type", "application/json");
    const url = new URL(path, app.baseUrl());
    return dispatch(
      app,
      new Request(url, { method, headers: own, ...(body && { body: isForm ? body : JSON.stringify(body) }) }),
      address,
    );
  }

  /** `record`: the response, where it is one record. */
  async function run(one: ApiTool, args: Json): Promise<{ result: CallToolResult; record: Json | null }> {
    let request: ReturnType<ApiTool["request"]>;
    try {
      request = one.request(args);
    } catch (error) {
      if (!(error instanceof TypeError)) throw error;
      return { result: answer(error.message, true), record: null };
    }
    const response = await send(request.method, request.path, request.body);
    const text = await response.text();
    if (!response.ok) return { result: answer(limited(text), true), record: null };
    if (text === "") return { result: answer("Done."), record: null };
    if (!response.headers.get("content-type")?.includes("json")) return { result: answer(limited(text)), record: null };
    await pace();
    const body = JSON.parse(text) as Json;
    return { result: answer(await shortened(body, cursorOf(response.headers))), record: body };
  }

  async function call(own: readonly ApiTool[], name: string, args: unknown) {
    const one = own.find(({ tool }) => tool.name === name);
    const refuse = (why: string) => ({ result: answer(why, true), record: null });
    if (!one) return refuse(`There is no operation ${name} for these credentials; list_operations shows all.`);
    if (typeof args !== "object" || args === null || Array.isArray(args)) return refuse("arguments must be an object.");
    return run(one, args as Json);
  }

  return {
    async listTools() {
      const own = await allowed();
      const primary = own.filter(({ isPrimary }) => isPrimary).map(({ tool }) => tool);
      const canWait = own.some(({ operationId }) => operationId === "getAsset");
      return [...primary, ...(canWait ? [WAIT] : []), LIST_OPERATIONS, CALL_OPERATION];
    },

    async callTool(name, args, { report, signal }) {
      const own = await allowed();
      if (name === LIST_OPERATIONS.name) return answer(limited(operationsText(own, args.topic)));
      if (name === WAIT.name)
        return waitUntilReady(app, ownerOf(caller), args, ({ operation, id }) => call(own, operation, { id }), {
          report,
          signal: AbortSignal.any([signal, context.signal, app.stopping]),
        });
      const isOther = name === CALL_OPERATION.name;
      return (await call(own, isOther ? String(args.name) : name, isOther ? (args.arguments ?? {}) : args)).result;
    },

    async listResources() {
      const resources: Resource[] = [];
      for (let cursor: string | null = ""; cursor !== null && resources.length < LISTED_ASSETS; ) {
        const query = new URLSearchParams({ limit: String(READ_AT_ONCE), ...(cursor && { cursor }) });
        const response = await send("GET", `/api/v1/assets?${query}`);
        if (!response.ok) break;
        await pace();
        for (const { id, title } of (await response.json()) as { id: number; title: string }[])
          resources.push({ uri: `vodbox://assets/${id}`, name: title, mimeType: "application/json" });
        cursor = cursorOf(response.headers);
      }
      return resources;
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
  const found = rankByWords(
    others.map(({ tool, tag }) => ({ name: tool.name.replaceAll("_", " "), topic: tag, text: tool.description ?? "" })),
    topic,
  ).slice(0, MAX_FOUND);
  return JSON.stringify(
    found.map((index) => {
      const { tool, tag } = others[index] as ApiTool;
      return {
        name: tool.name,
        topic: tag,
        summary: tool.description,
        destructive: tool.annotations?.destructiveHint,
        arguments: tool.inputSchema,
      };
    }),
  );
}
