import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { atEnd, newFolder } from "#test/support/folder.ts";
import { MAIN_PROGRAM, type RunningServer, run, startServer } from "#test/support/process.ts";

/** `vodbox mcp`, as an agent on a person's machine starts it. */

let server: RunningServer;
let key: string;
let id: number;
beforeAll(async () => {
  server = await startServer(newFolder());
  const { admin, as } = server;
  const tenant = await as({ admin }).createTenant({ name: "Acme", slug: "acme" });
  const made = await as({ admin }).createApiKey({ tenant_id: tenant.body.id, scopes: ["assets:read"] });
  key = made.body.token;
  const sizes = { source_bytes: 0, storage_bytes: 0, duration_seconds: 0 };
  const draft = {
    title: "Draft",
    source_key: `tenants/${tenant.body.id}/draft`,
    input_status: "pending",
    playback_status: "draft",
    ...sizes,
  };
  const asset = await as({ admin }).createAsset({ tenant_id: tenant.body.id, video_asset: draft });
  expect(asset.status, asset.text).toBe(201);
  id = asset.body.asset.id;
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
    expect(JSON.parse(listed.content[0].text)).toMatchObject({ items: [{ id, title: "Draft" }] });
    const missing = (await client.callTool({ name: "get_asset", arguments: { id: 999 } })) as any;
    expect(missing).toMatchObject({ isError: true });
    expect((await client.listResources()).resources).toMatchObject([{ uri: `vodbox://assets/${id}`, name: "Draft" }]);
    const progress: number[] = [];
    const waited = (await client.callTool(
      { name: "wait_until_ready", arguments: { asset_id: id, seconds: 1 } },
      undefined,
      {
        onprogress: (report) => void progress.push(report.progress),
      },
    )) as any;
    expect(JSON.parse(waited.content[0].text)).toMatchObject({ id, playback_status: "draft" });
    expect(progress).toEqual([0]);
    await expect(client.readResource({ uri: "vodbox://assets/999" })).rejects.toMatchObject({ code: -32602 });
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

  test.each([
    ["all requests at once", []],
    ["lines that are no messages between them", ["not JSON", "", "[1,2]", '{"id":5}', "null"]],
  ])("answers %s before it ends, when standard input was closed at once", async (_, between) => {
    const params = { protocolVersion: "2025-06-18", capabilities: {}, clientInfo: { name: "script", version: "1" } };
    const call = (id: number, method: string, sent?: object) =>
      JSON.stringify({ jsonrpc: "2.0", id, method, ...(sent && { params: sent }) });
    const lines = [
      call(1, "initialize", params),
      JSON.stringify({ jsonrpc: "2.0", method: "notifications/initialized" }),
      ...between,
      ...[2, 3, 4].map((each) => call(each, "tools/call", { name: "get_asset", arguments: { id } })),
      call(5, "tools/list"),
      call(6, "resources/read", { uri: `vodbox://assets/${id}` }),
      call(7, "nothing"),
    ];
    const env = { VODBOX_SERVER: server.base, VODBOX_KEY: key };
    const { code, stdout, stderr } = await run(["mcp"], { env, input: `${lines.join("\n")}\n` });
    const answers = stdout
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line));
    expect([code, answers.map(({ id: of }) => of).toSorted()]).toEqual([0, [1, 2, 3, 4, 5, 6, 7]]);
    expect(answers.find(({ id: of }) => of === 6).result.contents[0].text).toContain("Draft");
    expect(stderr).not.toMatch(/invalid_union/);
    for (const line of stderr.trim().split("\n").filter(Boolean)) expect(line).toMatch(/^vodbox: .+\.$/);
  });
});
