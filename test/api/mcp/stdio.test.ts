import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { atEnd, newFolder } from "#test/support/folder.ts";
import { MAIN_PROGRAM, type RunningServer, run, startServer } from "#test/support/process.ts";

/** `vodbox mcp`, as an agent on a person's machine starts it. */

let server: RunningServer;
let key: string;
beforeAll(async () => {
  server = await startServer(newFolder());
  const { admin, call } = server;
  const tenant = await call("POST", "/api/v1/admin/tenants", { admin, body: { name: "Acme", slug: "acme" } });
  const made = await call("POST", "/api/v1/api_keys", {
    admin,
    body: { tenant_id: tenant.body.id, scopes: ["assets:read"] },
  });
  key = made.body.token;
});
afterAll(() => void server?.child.kill("SIGKILL"));

async function agent(env: Record<string, string>): Promise<Client> {
  const [command, ...args] = MAIN_PROGRAM;
  const client = new Client({ name: "test", version: "1.0.0" });
  const transport = new StdioClientTransport({ command, args: [...args, "mcp"], env, stderr: "pipe" });
  await client.connect(transport);
  atEnd(() => client.close());
  return client;
}

describe("vodbox mcp", () => {
  test("offers the tools and resources of the server for the key's scopes", async () => {
    const client = await agent({ VODBOX_SERVER: server.base, VODBOX_KEY: key });
    expect(client.getServerVersion()?.name).toBe("vodbox");
    const names = (await client.listTools()).tools.map(({ name }) => name);
    expect(names).toContain("list_assets");
    expect(names).not.toContain("delete_asset");
    const listed = (await client.callTool({ name: "list_assets", arguments: {} })) as any;
    expect(JSON.parse(listed.content[0].text)).toEqual({ items: [] });
    const missing = (await client.callTool({ name: "get_asset", arguments: { id: 1 } })) as any;
    expect(missing).toMatchObject({ isError: true });
    expect((await client.listResources()).resources).toEqual([]);
    await expect(client.readResource({ uri: "vodbox://assets/1" })).rejects.toMatchObject({ code: -32602 });
  });

  test("uses the server on the data directory without settings", async () => {
    const client = await agent({ VODBOX_DATA_DIR: server.dataDir, VODBOX_ADMIN_TOKEN: server.admin });
    expect((await client.listTools()).tools.map(({ name }) => name)).toContain("delete_asset");
  });

  test("ends with a sentence when it cannot work, and with 0 when the agent closes it", async () => {
    const wrong = await run(["mcp"], { env: { VODBOX_SERVER: server.base, VODBOX_KEY: "svc_wrong" } });
    expect(wrong).toMatchObject({ code: 1, stdout: "" });
    expect(wrong.stderr).toMatch(/answered 401/);
    const nowhere = await run(["mcp"], { env: { VODBOX_SERVER: "http://127.0.0.1:1", VODBOX_KEY: key } });
    expect(nowhere).toMatchObject({ code: 1, stdout: "" });
    expect(nowhere.stderr).toMatch(/127\.0\.0\.1:1/);
    expect(await run(["mcp"], { env: { VODBOX_SERVER: server.base, VODBOX_KEY: key } })).toMatchObject({ code: 0 });
  });
});
