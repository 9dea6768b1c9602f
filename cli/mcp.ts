import { serveStdio } from "@modelcontextprotocol/server/stdio";
import type { Command } from "commander";
import { type McpBackend, mcpServer } from "#features/mcp/server.ts";
import { UserError } from "#lib/base";
import { serverOfEnvironment } from "./connect.ts";
import { targetOf } from "./push/target.ts";
import { settingsOf } from "./settings.ts";

type Options = { server?: string; key?: string };
type Answer = { result?: unknown; error?: { code: number; message: string } };

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
  const closed = new Promise<void>((resolve) => process.stdin.once("end", resolve).once("close", resolve));
  const handle = serveStdio(() => mcpServer(backend), {
    onerror: (error) => process.stderr.write(`vodbox: ${error.message}\n`),
  });
  await closed;
  await handle.close();
}

function remoteBackend(server: string, headers: Record<string, string>): McpBackend {
  let id = 0;
  async function call<T>(method: string, params: Record<string, unknown> = {}): Promise<T> {
    const response = await fetch(`${server}/mcp`, {
      method: "POST",
      headers: { ...headers, "content-type": "application/json", accept: "application/json, text/event-stream" },
      body: JSON.stringify({ jsonrpc: "2.0", id: ++id, method, params }),
    }).catch((error: Error) => {
      const { code } = (error.cause ?? {}) as { code?: string };
      throw new UserError(`${server} cannot be reached${code ? ` (${code})` : ""}.`);
    });
    const text = await response.text();
    if (!response.ok) throw new UserError(`${server} answered ${response.status}: ${reasonOf(text)}`);
    const { result, error } = messageOf(text);
    if (error) throw Object.assign(new Error(error.message), { code: error.code });
    return result as T;
  }
  return {
    listTools: async () => (await call<{ tools: Awaited<ReturnType<McpBackend["listTools"]>> }>("tools/list")).tools,
    callTool: (name, args) => call("tools/call", { name, arguments: args }),
    listResources: async () =>
      (await call<{ resources: Awaited<ReturnType<McpBackend["listResources"]>> }>("resources/list")).resources,
    readResource: (uri) => call("resources/read", { uri }),
  };
}

/** The message of a JSON body, or of the only event of a stream. */
function messageOf(text: string): Answer {
  const line = text.startsWith("{")
    ? text
    : text
        .split("\n")
        .find((each) => each.startsWith("data: "))
        ?.slice(6);
  return JSON.parse(line ?? "{}") as Answer;
}

function reasonOf(text: string): string {
  try {
    return String((JSON.parse(text) as { error?: unknown }).error ?? text).slice(0, 500);
  } catch {
    return text.slice(0, 200);
  }
}
