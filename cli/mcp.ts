import { serveStdio } from "@modelcontextprotocol/server/stdio";
import type { Command } from "commander";
import { type CallContext, type McpBackend, mcpServer } from "#features/mcp/server.ts";
import { UserError } from "#lib/base";
import { serverOfEnvironment } from "./connect.ts";
import { AnsweringTransport } from "./mcp-transport.ts";
import { targetOf } from "./push/target.ts";
import { settingsOf } from "./settings.ts";

type Options = { server?: string; key?: string };
/** A response, or a notification of progress. */
type Message = {
  result?: unknown;
  error?: { code: number; message: string };
  params?: { progress?: number; message?: string };
};

/** Serves an agent on standard input and output until it closes them. Each request is one of `POST /mcp` of the server. */
export async function mcpCommand(command: Command): Promise<void> {
  const options = command.opts<Options>();
  const { server, headers } = await targetOf(settingsOf(command), {
    server: options.server ?? serverOfEnvironment(),
    key: options.key ?? (process.env.VODBOX_KEY || undefined),
    tenant: undefined,
  });
  const backend = remoteBackend(server, headers);
  // An agent shows its user what a server writes before it answers: a wrong key, or a server of an earlier version.
  await backend.listTools();
  const transport = new AnsweringTransport(process.stdin);
  const { ended } = transport;
  const handle = serveStdio(() => mcpServer(backend), {
    transport,
    onerror: (error) => process.stderr.write(`vodbox: ${faultOf(error)}\n`),
  });
  await ended;
  await handle.close();
}

/** The library describes a message without the form of JSON-RPC by all that its schema expected. */
const faultOf = ({ name, message }: Error) =>
  name === "ZodError" || message.startsWith("[")
    ? "A line of standard input is not a JSON-RPC message; it is ignored."
    : message;

/** How to pass on a request of the agent: its cancellation, and where its progress goes. */
type CallOptions = Partial<CallContext>;

function remoteBackend(server: string, headers: Record<string, string>): McpBackend {
  let lastId = 0;
  async function call<T>(
    method: string,
    params: Record<string, unknown> = {},
    { report, signal }: CallOptions = {},
  ): Promise<T> {
    const id = ++lastId;
    const sent = report ? { ...params, _meta: { progressToken: id } } : params;
    const response = await fetch(`${server}/mcp`, {
      method: "POST",
      headers: { ...headers, "content-type": "application/json", accept: "application/json, text/event-stream" },
      body: JSON.stringify({ jsonrpc: "2.0", id, method, params: sent }),
      ...(signal && { signal }),
    }).catch((error: Error) => {
      const { code } = (error.cause ?? {}) as { code?: string };
      throw new UserError(`${server} cannot be reached${code ? ` (${code})` : ""}.`);
    });
    if (!response.ok) throw new UserError(`${server} answered ${response.status}: ${reasonOf(await response.text())}`);
    for await (const { result, error, params: sentBack } of messagesOf(response)) {
      if (error) throw Object.assign(new Error(error.message), { code: error.code });
      if (result !== undefined) return result as T;
      await report?.(sentBack?.progress ?? 0, sentBack?.message ?? "");
    }
    throw new UserError(`${server} closed the connection before its response was complete.`);
  }
  return {
    listTools: async () => (await call<{ tools: Awaited<ReturnType<McpBackend["listTools"]>> }>("tools/list")).tools,
    callTool: (name, args, context) => call("tools/call", { name, arguments: args }, context),
    listResources: async () =>
      (await call<{ resources: Awaited<ReturnType<McpBackend["listResources"]>> }>("resources/list")).resources,
    readResource: (uri) => call("resources/read", { uri }),
  };
}

/** The message of a JSON body, or those of a stream of events as they arrive: progress, then the response. */
async function* messagesOf(response: Response): AsyncGenerator<Message> {
  if (!response.headers.get("content-type")?.startsWith("text/event-stream"))
    return yield (await response.json()) as Message;
  let text = "";
  for await (const part of (response.body ?? new ReadableStream()).pipeThrough(new TextDecoderStream())) {
    text += part;
    const lines = text.split("\n");
    text = lines.pop() ?? "";
    // A message is one line: JSON contains no line break.
    for (const line of lines) if (line.startsWith("data: {")) yield JSON.parse(line.slice(6)) as Message;
  }
}

function reasonOf(text: string): string {
  try {
    return String((JSON.parse(text) as { error?: unknown }).error ?? text).slice(0, 500);
  } catch {
    return text.slice(0, 200);
  }
}
