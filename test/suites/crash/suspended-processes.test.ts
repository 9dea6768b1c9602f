import { expect, test, vi } from "vitest";
import { readyAsset } from "#test/support/flow.ts";
import { emptyFolder } from "#test/support/folder.ts";
import { freshly } from "#test/support/fresh.ts";
import { startServer } from "#test/support/process.ts";
import { typedClient } from "#test/support/typed-client.ts";

/** This many connections in a row reach every process. */
const ASKED = 24;
const LIMIT_MS = 5000;

test("a suspension is effective in every process within five seconds, and so is its end", async () => {
  const server = await startServer(emptyFolder(), { args: ["--processes", "3"] });
  const { admin, worker } = server;
  const call = freshly(server.base);
  const tenant = await server.as({ admin }).createTenant({ name: "T", slug: "t" });
  const scopes = ["assets:read", "assets:write"];
  const issued = await server.as({ admin }).createApiKey({ tenant_id: tenant.body.id, scopes });
  const key = issued.body.token;
  const { asset, contract } = await readyAsset({ call, worker }, key, { playback_policy: "public" });
  const body = { filename: "a.mp4", bytes_expected: 3 };
  const { upload_url } = (await typedClient(call)(key).initiateUpload(body)).body;
  const version = contract.outputs.prefix.split("/").at(-2);
  const segment = `/media/${asset.external_id}/${version}/low/1.m4s`;
  const statuses = async () => {
    const answers = await Promise.all(
      Array.from({ length: ASKED }, (_, n) =>
        n % 2 === 0 ? call("GET", segment) : call("PUT", upload_url, { raw: "abc" }),
      ),
    );
    return [...new Set(answers.map(({ status, body }) => `${status} ${body?.code ?? ""}`))];
  };
  expect(await statuses()).toEqual(["200 "]);
  for (const [status, expected] of [
    ["suspended", "403 tenant_suspended"],
    ["active", "200 "],
  ] as const) {
    const changed = await typedClient(call)({ admin }).updateTenant(tenant.body.id, { status });
    expect(changed.status).toBe(200);
    await vi.waitFor(async () => expect(await statuses()).toEqual([expected]), { timeout: LIMIT_MS, interval: 100 });
  }
});
