import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { linkSync, readFileSync } from "node:fs";
import { Agent, get, type IncomingMessage } from "node:http";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { SwitchingStore } from "#storage/objects/switching.ts";
import { testApp } from "#test/support/app.ts";
import { callback, next, putArtifacts, readyAsset, uploaded } from "#test/support/flow.ts";
import { emptyFolder, newFolder, removeFolder } from "#test/support/folder.ts";
import { type RunningServer, startServer } from "#test/support/process.ts";

const MIB = 2 ** 20;
const SLOW = 32;
const SEGMENT = randomBytes(3 * 2 ** 20 + 5);

/** The URL of an asset's directory with a large segment in it. */
async function published(app: Pick<RunningServer, "call" | "worker">, key: string): Promise<string> {
  const { asset } = await uploaded(app, key, { playback_policy: "public" });
  const { body: contract } = await next(app);
  const { prefix } = contract.outputs;
  const paths = await putArtifacts(app, contract, { [`${prefix}low/2.m4s`]: SEGMENT });
  const done = await callback(app, contract, "complete", { ...paths, media: { duration_seconds: 4 } });
  expect(done.status, done.text).toBe(200);
  return `/media/${asset.id}/${prefix.split("/").at(-2)}/low/`;
}

describe("segments through a socket", () => {
  const dataDir = newFolder();
  let server: RunningServer;
  let key: string;
  let folder: string;
  let end: () => void;
  beforeAll(async () => {
    // Without caching: each is read from disk.
    server = await startServer(dataDir, { env: { VODBOX_SEGMENT_CACHE_BYTES: "0", VODBOX_MIN_FREE_BYTES: "0" } });
    end = () => server.child.kill("SIGKILL");
    const { admin, as } = server;
    const tenant = await as({ admin }).createTenant({ name: "A", slug: "a" });
    const body = { tenant_id: tenant.body.id, scopes: ["assets:read", "assets:write"] };
    key = (await as({ admin }).createApiKey(body)).body.token;
    folder = `${server.base}${await published(server, key)}`;
  });
  afterAll(async () => {
    end();
    await server.ended;
    removeFolder(dataDir);
  });
  const bytesOf = async (init: RequestInit = {}) => {
    const answer = await fetch(`${folder}2.m4s`, init);
    return { status: answer.status, headers: answer.headers, bytes: Buffer.from(await answer.arrayBuffer()) };
  };

  test("arrive whole, in ranges and for many at once, byte for byte", async () => {
    const answers = await Promise.all(Array.from({ length: 40 }, () => bytesOf()));
    for (const { status, bytes } of answers) expect([status, bytes.equals(SEGMENT)]).toEqual([200, true]);
    for (const [range, from, to] of [
      ["bytes=0-0", 0, 1],
      ["bytes=262143-262145", 262_143, 262_146],
      ["bytes=1000000-", 1_000_000, SEGMENT.length],
      ["bytes=-70000", SEGMENT.length - 70_000, SEGMENT.length],
    ] as const) {
      const { status, bytes } = await bytesOf({ headers: { range } });
      expect([status, bytes.equals(SEGMENT.subarray(from, to))], range).toEqual([206, true]);
    }
    const head = await bytesOf({ method: "HEAD" });
    expect([head.status, head.bytes.length, head.headers.get("content-length")]).toEqual([
      200,
      0,
      String(SEGMENT.length),
    ]);
  });

  test("may be abandoned by many clients, and still reach the next ones", async () => {
    for (let turn = 0; turn < 30; turn++) {
      const request = get(`${folder}2.m4s`);
      request.on("error", () => {});
      const [answer] = await once(request, "response");
      answer.on("error", () => {});
      if (turn % 2) await once(answer, "data");
      request.destroy();
    }
    const answers = await Promise.all(Array.from({ length: 10 }, () => bytesOf()));
    for (const { bytes } of answers) expect(bytes.equals(SEGMENT)).toBe(true);
  });
});

test("readers that do not read use no more memory than twice the cache", async () => {
  const dataDir = emptyFolder();
  const cacheBytes = 16 * MIB;
  const env = { VODBOX_SEGMENT_CACHE_BYTES: String(cacheBytes), VODBOX_MIN_FREE_BYTES: "0" };
  const server = await startServer(dataDir, { env });
  const { admin, as } = server;
  const tenant = await as({ admin }).createTenant({ name: "A", slug: "a" });
  const body = { tenant_id: tenant.body.id, scopes: ["assets:write"] };
  const { token } = (await as({ admin }).createApiKey(body)).body;
  const { asset } = await uploaded(server, token, { playback_policy: "public" });
  const { body: contract } = await next(server);
  const { prefix } = contract.outputs;
  const paths = await putArtifacts(server, contract, { [`${prefix}low/2.m4s`]: new Uint8Array(8 * MIB) });
  await callback(server, contract, "complete", { ...paths, media: { duration_seconds: 4 } });
  const folder = join(dataDir, "objects", prefix, "low");
  for (let more = 0; more < SLOW; more++) linkSync(join(folder, "2.m4s"), join(folder, `slow-${more}.m4s`));
  const address = (name: string) => `${server.base}/media/${asset.id}/${prefix.split("/").at(-2)}/low/${name}.m4s`;
  const memory = () =>
    Number(/^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${server.child.pid}/status`, "utf8"))?.[1]) * 1024;
  await (await fetch(address("2"))).arrayBuffer();
  const before = memory();
  const agent = new Agent({ maxSockets: SLOW });
  const answers = await Promise.all(
    Array.from({ length: SLOW }, async (_, index) => {
      const [answer] = await once(get(address(`slow-${index}`), { agent }), "response");
      return answer as IncomingMessage;
    }),
  );
  // Held in memory, they would be 256 MB.
  expect(memory() - before).toBeLessThan(128 * MIB);
  const sizes = answers.map(async (answer) => {
    let bytes = 0;
    for await (const chunk of answer) bytes += chunk.length;
    return bytes;
  });
  expect(new Set(await Promise.all(sizes))).toEqual(new Set([8 * MIB]));
});

test("a segment with concurrent requests is read once", async () => {
  const app = await testApp();
  const key = await app.key((await app.tenant()).id);
  const { asset, contract } = await readyAsset(app, key, { playback_policy: "public" });
  const address = `/media/${asset.id}/${contract.outputs.prefix.split("/").at(-2)}/low/1.m4s`;
  const objects = app.opened.app.objects as SwitchingStore;
  const inner = await app.opened.app.openStore("local");
  const reads: string[] = [];
  objects.use({
    ...inner,
    get(key, range) {
      reads.push(key);
      return inner.get(key, range);
    },
  });
  const answers = await Promise.all(Array.from({ length: 200 }, () => app.call("GET", address)));
  expect(new Set(answers.map(({ text }) => text))).toEqual(new Set(["segment"]));
  expect(reads).toEqual([`${contract.outputs.prefix}low/1.m4s`]);
});
