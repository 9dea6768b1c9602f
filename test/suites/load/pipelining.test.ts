import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { memoryOf } from "#scripts/bench/processes.ts";
import { sample } from "#test/support/amount.ts";
import { newFolder, removeFolder } from "#test/support/folder.ts";
import { type PipelinedRequest, pipeline, pipelined } from "#test/support/pipelined.ts";
import { type RunningServer, startServer, tenantKey } from "#test/support/process.ts";

const MEBIBYTE = 2 ** 20;
/** Uncollected garbage of the server, whatever is requested. */
const SPARE_BYTES = 150 * MEBIBYTE;

let server: RunningServer;
let key: string;
let folder: string;
beforeAll(async () => {
  folder = newFolder();
  server = await startServer(folder);
  key = await tenantKey(server);
  // Once each, so that only what requests add is measured.
  for (const path of STATIC) expect((await server.call("GET", path)).status).toBe(200);
});
afterAll(async () => {
  server.child.kill("SIGKILL");
  await server.ended;
  removeFolder(folder);
});

const STATIC = ["/api/v1/openapi.json", "/docs", "/docs/scalar.js", "/docs/start.js", "/svc-player.js"];
const repeat = (count: number, ...all: PipelinedRequest[]) =>
  Array.from({ length: count }, (_, n) => all[n % all.length] as PipelinedRequest);
const initiate = (body: string): PipelinedRequest => ({
  method: "POST",
  path: "/api/v1/uploads/initiate",
  headers: { "content-type": "application/json" },
  body,
});

const ATTACKS: [name: string, requests: PipelinedRequest[]][] = [
  ...STATIC.flatMap((path): [string, PipelinedRequest[]][] => [
    [path, repeat(1000, { path })],
    [
      `${path}, compressed`,
      repeat(1000, { path, headers: { "accept-encoding": "gzip" } }, { path, headers: { "accept-encoding": "br" } }),
    ],
  ]),
  ["the API, twice as many", repeat(2000, { path: "/api/v1/openapi.json" })],
  ["refused requests with bodies", repeat(1000, initiate(JSON.stringify({ filename: "x".repeat(5000) })))],
  [
    "a mix",
    repeat(1000, { path: "/api/v1/openapi.json" }, initiate("{}"), { path: "/docs/scalar.js" }, { path: "/nothing" }),
  ],
];

const memory = () => memoryOf(server.child.pid as number, "VmRSS");

/** Requests of a tenant, one after the other, until `work` ends; and the most memory of the server. */
async function nextToTenant(work: Promise<unknown>): Promise<{ requests: number; bytes: number }> {
  let isOn = true;
  const ended = work.finally(() => {
    isOn = false;
  });
  const seen = { requests: 0, bytes: 0 };
  while (isOn) {
    expect((await server.as(key).listAssets()).status).toBe(200);
    seen.requests++;
    seen.bytes = Math.max(seen.bytes, memory());
  }
  await ended;
  return seen;
}

describe("many requests on one connection", () => {
  test.each(sample(ATTACKS, 3))("%s: a tenant's requests continue, in bounded memory", async (_, requests) => {
    const before = memory();
    const answers = pipelined(server.base, requests);
    const { requests: others, bytes } = await nextToTenant(answers);
    expect((await answers).every(({ status }) => status < 500)).toBe(true);
    // The connection gets no more than a small multiple of what another one gets.
    expect(others).toBeGreaterThan(requests.length / 100);
    expect(bytes - before).toBeLessThan(SPARE_BYTES);
  });

  test.each(sample(ATTACKS, 2))("%s: 20 clients that never read, and then leave", async (_, requests) => {
    const before = memory();
    const sockets = Array.from({ length: 20 }, () => pipeline(server.base, requests).pause());
    const some = (async () => {
      for (let n = 0; n < 50; n++) await server.as(key).listAssets();
    })();
    const { bytes } = await nextToTenant(some);
    for (const socket of sockets) socket.destroy();
    expect(bytes - before).toBeLessThan(SPARE_BYTES);
    // Nothing that they had requested delays the next ones.
    await nextToTenant(pipelined(server.base, repeat(20, { path: "/api/v1/openapi.json" })));
  });
});

describe("static responses", () => {
  test.each(STATIC.filter((path) => path !== "/docs"))("%s: validators, HEAD and codings", async (path) => {
    const plain = await server.call("GET", path, { headers: { "accept-encoding": "identity" } });
    const etag = plain.headers.get("etag") as string;
    expect(etag).toMatch(/^"[0-9a-f]+"$/);
    const known = await server.call("GET", path, { headers: { "if-none-match": etag } });
    expect([known.status, known.headers.get("etag")]).toEqual([304, etag]);
    for (const coding of ["gzip", "br"]) {
      const headers = { "accept-encoding": coding };
      const coded = await server.call("GET", path, { headers });
      expect(coded.text).toBe(plain.text);
      const head = await server.call("HEAD", path, { headers });
      for (const name of ["etag", "content-length", "content-encoding", "vary"])
        expect(head.headers.get(name), name).toBe(coded.headers.get(name));
      expect(head.text).toBe("");
    }
  });
});
