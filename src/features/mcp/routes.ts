import * as v from "valibot";
import { requireOwnOrigin } from "#platform/http/cross-site.ts";
import type { Context, Route } from "#platform/http/route.ts";
import { route } from "#platform/http/route.ts";

/** Any object: the protocol answers what is wrong with it. It has no batches since 2025-06-18. */
const Message = v.pipe(
  v.looseObject({}),
  v.title("McpMessage"),
  v.description("A JSON-RPC message of the Model Context Protocol"),
);

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
    errors: { 403: ["cross_site"] },
    handle: (context) => serve(context as Context, api),
  }),
];
