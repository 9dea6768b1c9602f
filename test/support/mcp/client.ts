import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { expect } from "vitest";
import { atEnd } from "../folder.ts";

/** An agent with this key, in this header: the official client, of the protocol's version that agents have today. */
export async function agentOf(server: { base: string }, key: string, header = "x-api-key"): Promise<Client> {
  const client = new Client({ name: "test", version: "1.0.0" });
  const headers = { [header]: key };
  const transport = new StreamableHTTPClientTransport(new URL(`${server.base}/mcp`), { requestInit: { headers } });
  await client.connect(transport as Parameters<typeof client.connect>[0]);
  atEnd(() => client.close());
  return client;
}

/** `json`: the text, where it is JSON; a result that was cut is not. */
export type Result = { text: string; isError: boolean; json: any };

/** Calls a tool, which returns one text. `onProgress` also asks for progress. */
export async function callTool(
  client: Client,
  name: string,
  args: Record<string, unknown> = {},
  onProgress?: (progress: number) => void,
): Promise<Result> {
  const options = onProgress && {
    resetTimeoutOnProgress: true,
    onprogress: ({ progress }: { progress: number }) => onProgress(progress),
  };
  const result = (await client.callTool({ name, arguments: args }, undefined, options)) as any;
  expect(result.content).toHaveLength(1);
  const { text } = result.content[0];
  return { text, isError: result.isError === true, json: /^[[{].*[\]}]$/s.test(text) ? JSON.parse(text) : undefined };
}
