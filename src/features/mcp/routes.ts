import * as v from "valibot";
import type { HttpError } from "#lib/base";
import { requireOwnOrigin } from "#platform/http/cross-site.ts";
import type { Context, Route } from "#platform/http/route.ts";
import { Reply, route } from "#platform/http/route.ts";

/** All messages of a batch are worked on at once, and each may have a result of 100 kB. */
const MAX_BATCH = 16;

/** The protocol answers what is wrong with it. Versions before 2025-06-18 have batches. */
const Message = v.pipe(
  v.union([v.pipe(v.array(v.unknown()), v.maxLength(MAX_BATCH)), v.looseObject({})]),
  v.title("McpMessage"),
  v.description("A JSON-RPC message of the Model Context Protocol"),
);

/** JSON-RPC 2.0, 5.1. */
const PARSE_ERROR = -32700;
const INVALID_REQUEST = -32600;

/** A body that is no message is answered in the form of the protocol; other refusals are of HTTP, and in our form. */
function jsonRpcError({ status, code, message }: HttpError): Reply | undefined {
  if (status !== 400 && status !== 422) return undefined;
  const error = { code: code === "invalid_json" ? PARSE_ERROR : INVALID_REQUEST, message };
  return new Reply(400, { jsonrpc: "2.0", error, id: null });
}

async function serve(context: Context, api: readonly Route[]): Promise<Response> {
  const { app, headers, request, body } = context;
  // A page that a user visits must not use a server in the user's network (MCP, Security: DNS rebinding).
  requireOwnOrigin(headers, app.baseUrl());
  // Loaded with the first call: most servers never need it.
  const [{ createMcpHandler }, { mcpServer }, { mcpBackend }] = await Promise.all([
    import("@modelcontextprotocol/server"),
    import("./server.ts"),
    import("./backend.ts"),
  ]);
  const handler = createMcpHandler(() => mcpServer(mcpBackend(context, api)));
  return handler.fetch(request, { parsedBody: body });
}

/** `POST /mcp`: the API as tools for agents, by the Model Context Protocol over streamable HTTP, without sessions. */
export const mcpRoutes = (api: readonly Route[]): Route[] => [
  route({
    method: "POST",
    path: "/mcp",
    hidden: true,
    tag: "Agents",
    summary: "Call the API by the Model Context Protocol",
    body: Message,
    // Each call of the API that it makes is checked for itself.
    reads: true,
    audited: false,
    responses: { 200: v.unknown() },
    showError: jsonRpcError,
    errors: { 403: ["cross_site"] },
    handle: (context) => serve(context as Context, api),
  }),
];
