import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { newFolder } from "#test/support/folder.ts";
import { agentOf, callTool } from "#test/support/mcp/client.ts";
import { type RunningServer, startServer } from "#test/support/process.ts";

/** The server as an agent uses it: by the official client, of the protocol's version that agents have today. */

const LISTED = 45;
const NEW = {
  input_status: "pending",
  playback_status: "draft",
  source_bytes: 0,
  storage_bytes: 0,
  duration_seconds: 0,
};

let server: RunningServer;
let tenantId: number;
let key: string;
let assets: any[];
beforeAll(async () => {
  server = await startServer(newFolder());
  tenantId = await newTenant("acme");
  key = await newKey(tenantId, ["assets:read", "assets:write", "playback:read"]);
  assets = [];
  for (let index = 0; index < LISTED; index++) {
    const asset = {
      title: `Film ${index}`,
      description: "é".repeat(900),
      source_key: `tenants/${tenantId}/${index}`,
      ...NEW,
    };
    const made = await server.as(key).createAsset({ tenant_id: tenantId, video_asset: asset });
    expect(made.status, made.text).toBe(201);
    assets.push(made.body.asset);
  }
});
afterAll(() => void server?.child.kill("SIGKILL"));

async function newTenant(slug: string): Promise<number> {
  const made = await server.as({ admin: server.admin }).createTenant({ name: slug, slug });
  expect(made.status, made.text).toBe(201);
  return made.body.id;
}
async function newKey(tenant: number, scopes: string[]): Promise<string> {
  const body = { tenant_id: tenant, name: "Agent", scopes };
  const made = await server.as({ admin: server.admin }).createApiKey(body);
  expect(made.status, made.text).toBe(201);
  return made.body.token;
}

const agent = (secret = key, header?: string) => agentOf(server, secret, header);
const run = callTool;

describe("tools", () => {
  test("are named like the operations, few, and say what they need and what they destroy", async () => {
    const client = await agent();
    const { tools } = await client.listTools();
    const names = tools.map(({ name }) => name);
    expect(names).toEqual(expect.arrayContaining(["list_assets", "get_asset", "delete_asset", "upload_from_url"]));
    expect(names.length).toBeLessThanOrEqual(28);
    expect(new Set(names).size).toBe(names.length);
    for (const { name, description, inputSchema, annotations } of tools) {
      expect(name).toMatch(/^[a-z_]{3,40}$/);
      expect(description?.length, name).toBeGreaterThan(10);
      expect(inputSchema.type, name).toBe("object");
      for (const [property, schema] of Object.entries(inputSchema.properties ?? {}))
        expect((schema as any).description?.length, `${name} ${property}`).toBeGreaterThan(3);
      expect(annotations, name).toMatchObject({
        readOnlyHint: expect.any(Boolean),
        destructiveHint: expect.any(Boolean),
      });
    }
    const named = (name: string) => tools.find((tool) => tool.name === name);
    expect(named("delete_asset")?.annotations).toMatchObject({ readOnlyHint: false, destructiveHint: true });
    expect(named("list_assets")?.annotations).toMatchObject({ readOnlyHint: true, destructiveHint: false });
    expect(named("get_asset")?.inputSchema).toMatchObject({ required: ["id"], additionalProperties: false });
    expect(Buffer.byteLength(JSON.stringify(tools))).toBeLessThan(60_000);
  });

  test("are those of the key's scopes", async () => {
    const reader = await agent(await newKey(tenantId, ["assets:read"]));
    const names = (await reader.listTools()).tools.map(({ name }) => name);
    expect(names).toContain("list_assets");
    expect(names).not.toContain("delete_asset");
    expect(names).not.toContain("create_webhook");
    const refused = await run(reader, "delete_asset", { id: assets[0].id });
    expect(refused).toMatchObject({
      isError: true,
      text: expect.stringContaining("There is no operation delete_asset"),
    });
    const other = await run(reader, "call_operation", { name: "delete_asset", arguments: { id: assets[0].id } });
    expect(other.isError).toBe(true);
    expect((await server.as(key).getAsset(assets[0].id)).status).toBe(200);
  });

  test("are those of a person's role", async () => {
    const person = { email: "viewer@example.com", password: "correct horse" };
    const body = { tenant_id: tenantId, role: "viewer", ...person };
    const made = await server.as({ admin: server.admin }).createTenantUser(body);
    expect(made.status, made.text).toBe(201);
    const device = await server.as().createDeviceToken({ email_address: person.email, password: person.password });
    const viewer = await agent(device.body.token);
    const names = (await viewer.listTools()).tools.map(({ name }) => name);
    expect(names).toContain("list_assets");
    expect(names).not.toContain("update_tags");
    const listed = await run(viewer, "list_assets");
    expect(listed.isError, listed.text).toBe(false);
  });

  test("list 20 records, with the cursor of the next page, each in at most 600 characters", async () => {
    const client = await agent();
    const ids: number[] = [];
    let cursor: string | undefined;
    const sizes: number[] = [];
    do {
      const { json, isError, text } = await run(client, "list_assets", cursor === undefined ? {} : { cursor });
      expect(isError, text).toBe(false);
      sizes.push(json.items.length);
      for (const item of json.items) {
        expect(JSON.stringify(item).length).toBeLessThanOrEqual(600);
        ids.push(item.id);
      }
      cursor = json.next_cursor;
    } while (cursor !== undefined);
    expect(sizes).toEqual([20, 20, 5]);
    expect(ids.toSorted((a, b) => a - b)).toEqual(assets.map(({ id }) => id));
    const { json } = await run(client, "list_assets", { limit: 3 });
    expect(json.items).toHaveLength(3);
  });

  test("change things, and report what the API refuses in its words", async () => {
    const client = await agent();
    const { id } = assets[1];
    const changed = await run(client, "update_asset", { id, video_asset: { title: "Another title" } });
    expect(changed, changed.text).toMatchObject({ isError: false, json: { id, title: "Another title" } });
    const read = await run(client, "get_asset", { id });
    expect(read.json).toMatchObject({ id, title: "Another title" });
    const { body: entries } = await server
      .as({ admin: server.admin })
      .listActivity({ tenant_id: tenantId, action: "update_asset" });
    expect(entries).toMatchObject([{ target_id: String(id), address: "127.0.0.1" }]);
    const wrong = await run(client, "update_asset", { id, video_asset: { title: "" } });
    expect(wrong).toMatchObject({ isError: true, json: { code: "validation_failed" } });
    const missing = await run(client, "get_asset", { id: 999_999 });
    expect(missing).toMatchObject({ isError: true, json: { code: "not_found" } });
    expect(await run(client, "get_asset", {})).toMatchObject({ isError: true, text: "id is required." });
    for (const id of ["..", ".", ""])
      expect(await run(client, "get_asset", { id })).toMatchObject({ isError: true, text: "id is not valid." });
    const unknown = await run(client, "get_asset", { id, color: "red" });
    expect(unknown).toMatchObject({
      isError: true,
      text: expect.stringMatching(/^color is not an argument of get_asset/),
    });
    const gone = await run(client, "delete_asset", { id: assets[44].id });
    expect(gone.isError, gone.text).toBe(false);
    assets.pop();
  });

  test("wait for an asset, with progress, for as long as they may", async () => {
    const client = await agent();
    const progress: number[] = [];
    const wait = (args: Record<string, unknown>) =>
      callTool(client, "wait_until_ready", args, (value) => progress.push(value));
    const draft = await wait({ asset_id: assets[0].id, seconds: 1 });
    expect(draft, draft.text).toMatchObject({ isError: false, json: { id: assets[0].id, playback_status: "draft" } });
    expect(progress).toEqual([0]);
    expect(await wait({ asset_id: 999_999 })).toMatchObject({ isError: true, json: { code: "not_found" } });
    for (const args of [{}, { asset_id: 1, job_id: 1 }, { tenant_id: 1 }, { constructor: 1 }])
      expect(await wait(args)).toMatchObject({
        isError: true,
        text: expect.stringMatching(/^One of asset_id, job_id/),
      });
    for (const seconds of [0, 301, "5", null])
      expect(await wait({ asset_id: assets[0].id, seconds })).toMatchObject({
        isError: true,
        text: "seconds must be a number from 1 to 300.",
      });
    const ended = new AbortController();
    const args = { asset_id: assets[0].id, seconds: 300 };
    const canceled = client.callTool({ name: "wait_until_ready", arguments: args }, undefined, {
      signal: ended.signal,
      onprogress: () => ended.abort(),
    });
    await expect(canceled).rejects.toThrow(/abort/i);
  });

  test("wait in a limited number", async () => {
    const client = await agent();
    const args = { asset_id: assets[0].id, seconds: 2 };
    const all = await Promise.all(Array.from({ length: 60 }, () => run(client, "wait_until_ready", args)));
    const refused = all.filter(({ isError }) => isError);
    expect(refused).toHaveLength(10);
    expect(refused[0]?.text).toMatch(/^At most 50 requests can wait/);
    expect((await run(client, "wait_until_ready", { ...args, seconds: 1 })).isError).toBe(false);
  });

  test("name the tenant only where the credentials are of all tenants", async () => {
    const body = { collection: { name: "Films", slug: "films" } };
    const made = await run(await agent(), "create_collection", body);
    expect(made, made.text).toMatchObject({ isError: false, json: { name: "Films" } });
    const operator = await agent(server.admin, "x-svc-admin-token");
    expect((await run(operator, "create_collection", body)).json).toMatchObject({ code: "parameter_missing" });
    const needsTenant = async (client: Awaited<ReturnType<typeof agent>>) => {
      const { tools } = await client.listTools();
      return tools.filter(({ inputSchema }) => "tenant_id" in (inputSchema.properties ?? {})).length;
    };
    expect(await needsTenant(operator)).toBeGreaterThan(0);
    expect(await needsTenant(await agent())).toBe(0);
  });

  test("further operations are listed by topic and can be called", async () => {
    const client = await agent();
    const { json: names } = await run(client, "list_operations");
    expect(names).toContain("list_encoding_profiles");
    const { json: found } = await run(client, "list_operations", { topic: "encoding profile" });
    expect(found.map(({ name }: any) => name)).toContain("get_encoding_profile");
    const called = await run(client, "call_operation", {
      name: "get_encoding_profile",
      arguments: { name: "default" },
    });
    expect(called, called.text).toMatchObject({ isError: false, json: { name: "default" } });
    for (const args of [{ name: "nothing" }, { name: "get_asset", arguments: [1] }, {}])
      expect((await run(client, "call_operation", args)).isError, JSON.stringify(args)).toBe(true);
  });

  test("results are at most 100 kB, whatever is stored", async () => {
    const client = await agent();
    const notes = Object.fromEntries(Array.from({ length: 80 }, (_, index) => [`note_${index}`, "é".repeat(1000)]));
    for (const { id } of assets.slice(0, 5)) {
      const set = await server.as(key).updateTags(id, notes);
      expect(set.status, set.text).toBe(200);
    }
    const list = await run(client, "list_assets", { limit: 500 });
    expect(list.json.items).toHaveLength(assets.length);
    const tags = await run(client, "update_tags", { id: assets[0].id, values: notes });
    expect(tags.isError, tags.text).toBe(false);
    for (const { text } of [list, tags]) expect(Buffer.byteLength(text)).toBeLessThanOrEqual(100_000);
  });
});

describe("resources", () => {
  test("are assets, read by their URI", async () => {
    const client = await agent();
    const { resources } = await client.listResources();
    const uri = `vodbox://assets/${assets[10].id}`;
    expect(resources).toContainEqual(expect.objectContaining({ uri, name: assets[10].title }));
    const { resourceTemplates } = await client.listResourceTemplates();
    expect(resourceTemplates.map(({ uriTemplate }) => uriTemplate)).toEqual([
      "vodbox://assets/{id}",
      "vodbox://assets/{id}/transcript",
    ]);
    const { contents } = await client.readResource({ uri });
    expect(JSON.parse((contents[0] as any).text)).toMatchObject({ id: assets[10].id, title: assets[10].title });
    for (const wrong of [
      "vodbox://assets/999999",
      "vodbox://tenants/1",
      "file:///etc/passwd",
      "vodbox://assets/../tenants",
    ])
      await expect(client.readResource({ uri: wrong }), wrong).rejects.toMatchObject({ code: -32602 });
  });
});

describe("strangers", () => {
  const post = (headers: Record<string, string>, body: unknown) =>
    fetch(`${server.base}/mcp`, {
      method: "POST",
      headers: { "content-type": "application/json", accept: "application/json, text/event-stream", ...headers },
      body: typeof body === "string" ? body : JSON.stringify(body),
    });
  const list = { jsonrpc: "2.0", id: 1, method: "tools/list", params: {} };

  test("a key of another tenant sees nothing of this one", async () => {
    const client = await agent(await newKey(await newTenant("other"), ["assets:read", "assets:write"]));
    expect((await run(client, "list_assets")).json).toEqual({ items: [] });
    expect(await run(client, "get_asset", { id: assets[0].id })).toMatchObject({
      isError: true,
      json: { code: "not_found" },
    });
    expect((await client.listResources()).resources).toEqual([]);
    await expect(client.readResource({ uri: `vodbox://assets/${assets[0].id}` })).rejects.toThrow();
  });

  test("without a key 401, from another site 403, by another method 405", async () => {
    expect((await post({}, list)).status).toBe(401);
    expect((await post({ "x-api-key": "svc_wrong" }, list)).status).toBe(401);
    for (const origin of ["https://evil.example", "null", `${server.base}.evil.example`, "http://localhost:1"]) {
      const refused = await post({ "x-api-key": key, origin }, list);
      expect([refused.status, ((await refused.json()) as any).code], origin).toEqual([403, "cross_site"]);
    }
    expect((await post({ "x-api-key": key, origin: server.base }, list)).status).toBe(200);
    for (const method of ["GET", "DELETE"])
      expect((await fetch(`${server.base}/mcp`, { method, headers: { "x-api-key": key } })).status, method).toBe(405);
  });

  test("a body that is no message is an error of JSON-RPC, and a batch of earlier versions is answered", async () => {
    const bodies = [
      ["{", -32_700],
      ["", -32_600],
      ["[]", -32_600],
      ["null", -32_600],
      ['"x"', -32_600],
      ['[{"jsonrpc":"1.0"}]', -32_600],
      [JSON.stringify(Array.from({ length: 17 }, (_, id) => ({ jsonrpc: "2.0", method: "ping", id }))), -32_600],
    ] as const;
    for (const [body, code] of bodies) {
      const answer = await post({ "x-api-key": key }, body);
      expect([body, answer.status, await answer.json()]).toEqual([
        body,
        400,
        { jsonrpc: "2.0", error: { code, message: expect.any(String) }, id: null },
      ]);
    }
    const ping = { jsonrpc: "2.0", method: "ping" };
    const batch = await post({ "x-api-key": key }, [
      { ...ping, id: 7 },
      { ...ping, id: 8 },
    ]);
    expect(batch.status).toBe(200);
    const text = await batch.text();
    for (const id of [7, 8]) expect(text).toContain(`"id":${id}`);
  });

  const BROKEN: [name: string, body: unknown][] = [
    ["no JSON", "{"],
    ["no message", {}],
    ["an unknown method", { ...list, method: "tools/steal" }],
    ["a call without a name", { ...list, method: "tools/call", params: {} }],
    ["a name that is no text", { ...list, method: "tools/call", params: { name: { a: 1 } } }],
    ["arguments that are no object", { ...list, method: "tools/call", params: { name: "get_asset", arguments: "x" } }],
    [
      "a name of an object's prototype",
      { ...list, method: "tools/call", params: { name: "__proto__", arguments: {} } },
    ],
    ["a URI that is no text", { ...list, method: "resources/read", params: { uri: 1 } }],
    ["a long URI", { ...list, method: "resources/read", params: { uri: `vodbox://assets/${"1".repeat(900_000)}` } }],
  ];
  test.each(BROKEN)("%s is answered with an error, and the server continues", async (_, body) => {
    const answer = await post({ "x-api-key": key }, body);
    expect(answer.status).toBeLessThan(500);
    const text = await answer.text();
    if (answer.status === 200) expect(text).toMatch(/"error"|"isError":true/);
    expect((await post({ "x-api-key": key }, list)).status).toBe(200);
  });
});
