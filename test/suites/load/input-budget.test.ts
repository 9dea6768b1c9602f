import { scryptSync } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { afterAll, beforeAll, expect, test } from "vitest";
import { HASH_COST } from "#features/credentials/devices/passwords.ts";
import { SCOPES } from "#platform/http/caller.ts";
import { type Flavor, type JsonSchema, largest } from "#test/support/api/largest-input.ts";
import { next, uploaded } from "#test/support/flow.ts";
import { newFolder, removeFolder } from "#test/support/folder.ts";
import { type RunningServer, startServer, tenantKey } from "#test/support/process.ts";

/**
 * For each operation of the route table, the largest and the most numerous input that its schema allows: the memory and the
 * processor time of the server are linear in its size.
 */

const MEBIBYTE = 2 ** 20;
/** The size of the JSON body of one request. */
const BODY_BYTES = 900_000;
/**
 * The processor time of a request in hashes of a password, which are slow where the machine is: of an empty one, with what the server
 * does meanwhile, and for each MiB.
 */
const BASE_HASHES = 2;
const HASHES_PER_MEBIBYTE = 7;
/** A password is checked and hashed at most. */
const PASSWORD_HASHES = 2;
/** On any machine, so that it is not compared with a hash. */
const CLEARLY_FAST_MS = 50;
/** Memory: garbage that is not collected yet, and bytes for each byte. */
const BASE_BYTES = 100 * MEBIBYTE;
const BYTES_PER_BYTE = 50;
const TICKS_PER_SECOND = 100;

let server: RunningServer;
let key: string;
let folder: string;
let lease: string;
beforeAll(async () => {
  folder = newFolder();
  server = await startServer(folder, { env: { VODBOX_LOG_LEVEL: "fatal" } });
  key = await tenantKey(server, SCOPES);
  // Each path parameter is 1: the first of its kind.
  const create = async (path: string, body: unknown) =>
    expect((await server.call("POST", `/api/v1/${path}`, { key, body })).status, path).toBe(201);
  await uploaded(server, key);
  const { body } = await next(server);
  lease = body.lease.token;
  await create("collections", { tenant_id: 1, collection: { name: "one", slug: "one" } });
  await create("webhooks", { tenant_id: 1, url: "https://example.com/" });
  await create("live/channels", { channel: "one" });
});
afterAll(async () => {
  server.child.kill("SIGKILL");
  await server.ended;
  removeFolder(folder);
});

const proc = (file: string) => `/proc/${server.child.pid}/${file}`;
/** The processor time of all threads. */
function processorMs(): number {
  const stat = readFileSync(proc("stat"), "latin1");
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return ((Number(fields[11]) + Number(fields[12])) * 1000) / TICKS_PER_SECOND;
}
const memory = (field: "VmRSS" | "VmHWM") =>
  Number(new RegExp(`${field}:\\s+(\\d+)`).exec(readFileSync(proc("status"), "latin1"))?.[1]) * 1024;
/** The maximum begins again. */
const forgetMaximum = () => writeFileSync(proc("clear_refs"), "5");

/** Processor time of a hash of a password just now: such an operation is meant to take long, whatever the input. */
function hashMs(): number {
  const before = performance.now();
  // Tests make the asynchronous one fast.
  scryptSync("a password", "a salt", 32, HASH_COST);
  return performance.now() - before;
}

/** What a request that hashes `hashes` passwords costs above the stated factors; null when nothing. */
async function excess(send: () => Promise<number>, hashes: number): Promise<string | null> {
  let found: string | null = null;
  // What is collected or compiled meanwhile exceeds a limit once; what is not linear does each time.
  for (let round = 0; round < 3; round++) {
    forgetMaximum();
    const memoryBefore = memory("VmRSS");
    const before = processorMs();
    const bytes = await send();
    const ms = processorMs() - before;
    const grown = memory("VmHWM") - memoryBefore;
    const allowedHashes = BASE_HASHES + hashes + (HASHES_PER_MEBIBYTE * bytes) / MEBIBYTE;
    const isSlow = ms > CLEARLY_FAST_MS && ms > allowedHashes * hashMs();
    found =
      isSlow || grown > BASE_BYTES + BYTES_PER_BYTE * bytes
        ? `${bytes} bytes: ${ms} ms, ${Math.round(grown / MEBIBYTE)} MiB`
        : null;
    if (found === null) return null;
  }
  return found;
}

const METHODS = ["get", "post", "put", "patch", "delete"] as const;
const FLAVORS: Flavor[] = ["large", "many"];

test("each operation takes its largest and its most numerous input in linear time and memory", async () => {
  const document: JsonSchema = (await server.call("GET", "/api/v1/openapi.json")).body;
  const found: string[] = [];
  const statuses: number[] = [];
  let sent = 0;
  for (const [path, operations] of Object.entries<JsonSchema>(document.paths))
    for (const method of METHODS) {
      const operation: JsonSchema | undefined = operations[method];
      const schema = operation?.requestBody?.content?.["application/json"]?.schema;
      if (!operation || !schema) continue;
      const credentials = /\/admin\/|tenants|api_keys/.test(path)
        ? { admin: server.admin }
        : JSON.stringify(operation.security ?? "").includes("orker")
          ? { worker: server.worker, lease }
          : { key };
      for (const flavor of FLAVORS) {
        const raw = JSON.stringify(largest(schema, BODY_BYTES, flavor, document));
        const url = path.replaceAll(/\{[^}]+\}/g, "1");
        const headers = { "content-type": "application/json", "idempotency-key": `budget-${sent++}` };
        const more = await excess(
          async () => {
            const { status } = await server.call(method.toUpperCase(), url, { ...credentials, raw, headers });
            // 503: a service that is not configured.
            expect([500, 502, 504], `${method} ${path}`).not.toContain(status);
            statuses.push(status);
            return raw.length;
          },
          raw.includes('"password"') || raw.includes('_password"') ? PASSWORD_HASHES : 0,
        );
        if (more !== null) found.push(`${method} ${path}, ${flavor}: ${more}`);
      }
    }
  expect(sent).toBeGreaterThan(50);
  // The schema is a part of what the handlers check, so some inputs are refused after validation.
  expect(statuses.filter((status) => status < 300).length).toBeGreaterThan(20);
  expect(found).toEqual([]);
});
