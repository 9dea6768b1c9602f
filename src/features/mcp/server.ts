import {
  type CallToolResult,
  type ReadResourceResult,
  type Resource,
  Server,
  type Tool,
} from "@modelcontextprotocol/server";
import { programVersion } from "#lib/executable";
import type { Json } from "#platform/http/openapi-schema.ts";

/** The request of a tool: what long work takes from it. */
export type CallContext = {
  /** Aborts when the client cancels the request. */
  signal: AbortSignal;
  /** Sends progress, from 0 to 100 and growing; undefined when the client did not ask for it. */
  report: ((progress: number, message: string) => Promise<void>) | undefined;
};

/** What an MCP server offers, whatever connection it serves. */
export type McpBackend = {
  listTools(): Promise<Tool[]>;
  /** Never throws for what the caller did: the result says it. */
  callTool(name: string, args: Json, context: CallContext): Promise<CallToolResult>;
  listResources(): Promise<Resource[]>;
  /** Null for a URI that names nothing. */
  readResource(uri: string): Promise<ReadResourceResult | null>;
};

const TEMPLATES = [
  {
    uriTemplate: "vodbox://assets/{id}",
    name: "asset",
    title: "A video with all of its fields",
    mimeType: "application/json",
  },
  {
    uriTemplate: "vodbox://assets/{id}/transcript",
    name: "transcript",
    title: "What is said in a video, from its subtitles",
    mimeType: "text/plain",
  },
];

const INSTRUCTIONS =
  "vodbox is a video platform. Videos are assets; upload_from_url adds one, wait_until_ready waits for it, get_playback returns URLs to watch it. Lists have 20 records and a next_cursor. list_operations finds what no tool does: shares, webhooks, keys, people, live streams and more.";

/** JSON-RPC: invalid params. MCP says so of a resource that is not found, since 2026-07-28. */
const NOT_FOUND = -32602;

/** A Model Context Protocol server with tools and resources; it keeps no state between requests. */
export function mcpServer(backend: McpBackend): Server {
  const server = new Server(
    { name: "vodbox", title: "vodbox", version: programVersion() },
    { capabilities: { tools: {}, resources: {} }, instructions: INSTRUCTIONS },
  );
  server.setRequestHandler("tools/list", async () => ({ tools: await backend.listTools() }));
  server.setRequestHandler("tools/call", ({ params }, { mcpReq }) => {
    const progressToken = mcpReq._meta?.progressToken;
    const report = async (progress: number, message: string) =>
      mcpReq.notify({ method: "notifications/progress", params: { progressToken, progress, total: 100, message } });
    return backend.callTool(params.name, (params.arguments ?? {}) as Json, {
      signal: mcpReq.signal,
      report: progressToken === undefined ? undefined : report,
    });
  });
  server.setRequestHandler("resources/list", async () => ({ resources: await backend.listResources() }));
  server.setRequestHandler("resources/templates/list", () => ({ resourceTemplates: TEMPLATES }));
  server.setRequestHandler("resources/read", async ({ params }) => {
    const found = await backend.readResource(params.uri);
    if (found) return found;
    throw Object.assign(new Error(`There is no resource ${params.uri.slice(0, 200)} for these credentials.`), {
      code: NOT_FOUND,
    });
  });
  return server;
}
