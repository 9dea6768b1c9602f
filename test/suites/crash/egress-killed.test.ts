import { once } from "node:events";
import { get } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import { expect, test } from "vitest";
import { callback, next, putArtifacts, uploaded } from "#test/support/flow.ts";
import { emptyFolder } from "#test/support/folder.ts";
import { type RunningServer, startServer } from "#test/support/process.ts";

/**
 * Larger than the system's socket buffers for a client that does not read, and the largest size that is served from
 * memory.
 */
const SEGMENT_BYTES = 16 * 2 ** 20;
const env = { VODBOX_MIN_FREE_BYTES: "0" };

test("egress counts sent bytes: not the rest of an abandoned segment, none lost by a stop, seconds by kill -9", async () => {
  const dataDir = emptyFolder();
  let server = await startServer(dataDir, { env });
  const { admin } = server;
  const tenant = await server.as({ admin }).createTenant({ name: "Egress", slug: "egress" });
  const tenant_id = tenant.body.id;
  const scopes = ["assets:read", "assets:write"];
  const key = (await server.as({ admin }).createApiKey({ tenant_id, scopes })).body.token;
  const path = await segmentOf(server, key);
  const counted = async () => (await server.as(key).listTenants()).body[0].egress_bytes as number;
  const restart = async (signal: NodeJS.Signals) => {
    server.child.kill(signal);
    await server.ended;
    server = await startServer(dataDir, { env });
  };
  const whole = async () => {
    const answer = await fetch(`${server.base}${path}`);
    expect((await answer.arrayBuffer()).byteLength).toBe(SEGMENT_BYTES);
  };

  // From memory, then to a client that disconnects after the response header.
  await whole();
  await leave(`${server.base}${path}`);
  await restart("SIGTERM");
  const first = await counted();
  expect(first).toBeGreaterThanOrEqual(SEGMENT_BYTES);
  expect(first).toBeLessThan(2 * SEGMENT_BYTES);

  await whole();
  // Every five seconds; there is no event to wait for.
  while ((await counted()) < first + SEGMENT_BYTES) await sleep(50);
  await whole();
  await restart("SIGKILL");
  const second = await counted();
  expect([first + SEGMENT_BYTES, first + 2 * SEGMENT_BYTES]).toContain(second);
});

/** The URL of an asset's one large segment. */
async function segmentOf(server: RunningServer, key: string): Promise<string> {
  const { asset } = await uploaded(server, key, { playback_policy: "public" });
  const { body: contract } = await next(server);
  const { prefix } = contract.outputs;
  const paths = await putArtifacts(server, contract, { [`${prefix}low/1.m4s`]: new Uint8Array(SEGMENT_BYTES) });
  const done = await callback(server, contract, "complete", { ...paths, media: { duration_seconds: 4 } });
  if (done.status !== 200) throw new Error(done.text);
  return `/media/${asset.id}/${prefix.split("/").at(-2)}/low/1.m4s`;
}

async function leave(address: string): Promise<void> {
  const request = get(address);
  const [answer] = await once(request, "response");
  answer.pause();
  answer.on("error", () => {});
  request.on("error", () => {});
  request.destroy();
  await once(request, "close");
}
