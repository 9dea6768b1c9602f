import { randomUUID } from "node:crypto";
import { expect, test } from "vitest";
import type { Route } from "../src/http/route.ts";
import { testApp } from "./support/app.ts";
import type { Answer } from "./support/client.ts";
import { expectError } from "./support/error.ts";
import { uploaded } from "./support/flow.ts";
import { emptyFolder } from "./support/folder.ts";
import { type RunningServer, startServer } from "./support/process.ts";

/** Another seed finds other things; a failure prints the request, and the same seed makes it again. */
const SEED = Number(process.env.FUZZ_SEED ?? 20_261_121);
const ROUNDS = Number(process.env.FUZZ_ROUNDS ?? 25);

/** mulberry32: the same numbers for the same seed. */
function dice(seed: number) {
  let state = seed;
  const next = () => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
  const pick = <T>(from: readonly T[]): T => from[Math.floor(next() * from.length)] as T;
  return { next, pick };
}
type Dice = ReturnType<typeof dice>;

const deep = (open: string, close: string, levels: number) => `${open.repeat(levels)}1${close.repeat(levels)}`;
// biome-ignore format: lists to be read, not columns.
const VALUES: readonly unknown[] = [
  null, true, false, 0, -1, 0.5, 1e308, -1e308, 2 ** 53, 2 ** 31, "", " ", "\0", "a\0b", "\ud800", "é".normalize("NFD"),
  "x".repeat(70_000), "../../etc/passwd", "..\\..\\x", "%2e%2e%2f", "'; DROP TABLE assets; --", "=1+1", "\u202eabc", "\ufeff",
  [], {}, [[]], [null], [{}], ["x"], { id: 1 }, { constructor: { prototype: {} } }, "2026-02-30T25:00:00Z", "9".repeat(400), "NaN",
  "true", "1", "http://169.254.169.254/", "file:///etc/passwd", "tenants/1/../2/x", "/etc/passwd", "C:\\x", "vid_x", "en-US",
];
// biome-ignore format: as above.
const SEGMENTS = [
  "0", "-1", "1e3", "0x10", "9".repeat(30), "%00", "a%00b", "..", "%2e%2e", "%2e%2e%2f%2e%2e%2fetc%2fpasswd", "%ff%fe",
  "%E0%A4%A", "x".repeat(3000), "%F0%9F%98%80", "null", "undefined", "__proto__", "1;2", "*", "%20", "1%2F2", "'", '"', "<x>",
];
// biome-ignore format: as above.
const TYPES = [
  "application/offset+octet-stream",
  "application/json", "application/json; charset=utf-16", "text/plain", "application/xml", "multipart/form-data", "text/csv",
  "multipart/form-data; boundary=x", "application/x-www-form-urlencoded", "", "application/vnd.api+json", "é",
];
// biome-ignore format: as above.
const RAW: readonly (string | Uint8Array)[] = [
  "", "{", "[", "nul", '"text"', "[1,2", "{}{}", '{"a":1,"a":2}', '{"__proto__":{"x":1}}', "\ufeff{}", "\0",
  deep("[", "]", 100_000), deep('{"a":', "}", 100_000), `{"a":"${"y".repeat(1_200_000)}"}`, new Uint8Array([0xff, 0xfe, 0x7b]),
  new Uint8Array([0x7b, 0x22, 0xc3, 0x28, 0x22, 0x3a, 0x31, 0x7d]),
  "--x\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a.srt\"\r\n\r\n1\r\n00:00",
  "--x\r\nContent-Disposition: form-data; name=\"file\"; filename=\"../../a.vtt\"\r\n\r\nWEBVTT\r\n\r\n--x--\r\n",
  `--x\r\n${"A: b\r\n".repeat(20_000)}\r\n--x--\r\n`, "title,original_filename\r\n\"a\r\n", "a,b\r\n1,2,3\r\n\0,\r\n",
];

/** A body of the document with something in it that does not belong there. */
function mutated(value: unknown, { next, pick }: Dice): unknown {
  if (typeof value === "object" && value !== null && next() < 0.85) {
    const entries = Object.entries(value);
    if (entries.length > 0) {
      const [name, inner] = pick(entries);
      const copy: Record<string, unknown> = Array.isArray(value) ? ([...value] as never) : { ...value };
      const chance = next();
      if (chance < 0.15) delete copy[name];
      else if (chance < 0.25) copy[pick(["__proto__x", "constructor", "", "a\0b", "unknown"])] = pick(VALUES);
      else copy[name] = mutated(inner, { next, pick });
      return copy;
    }
  }
  return pick(VALUES);
}

const TRAPS: readonly [name: string, is: (route: Route) => boolean][] = [
  ["it would change the tokens that the rest is asked with", (route) => route.path.endsWith("/rotate")],
  ["it revokes the key that it is asked with", (route) => route.path.endsWith("/device_tokens/current")],
];

test("whatever is sent to whichever route is answered in the one shape, never with a 5xx", {
  timeout: 240_000,
}, async () => {
  const table = await testApp();
  const document = (await table.call("GET", "/api/v1/openapi.json")).body;
  const routes = table.opened.routes.filter((route) => !TRAPS.some(([, is]) => is(route)));
  const rate = "1000000/1";
  const limits = ["UPLOADS", "DEVICE_TOKENS", "TRANSLATE", "SYNC", "BEACON"].map((name) => [
    `VODBOX_RATE_LIMIT_${name}`,
    rate,
  ]);
  const server = await startServer(emptyFolder(), {
    env: { ...Object.fromEntries(limits), VODBOX_LOG_FORMAT: "json", VODBOX_MIN_FREE_BYTES: "0" },
  });
  const key = await furnished(server);
  const random = dice(SEED);
  let sent = 0;
  for (const route of routes) {
    const path = route.path.replaceAll(/:(\w+)/g, "{$1}");
    const known = document.paths[path]?.[route.method.toLowerCase()]?.requestBody?.content ?? {};
    const example = (known["application/json"] ?? known["multipart/form-data"])?.example;
    const ids = await fresh(server, key);
    for (let round = 0; round < ROUNDS; round++) {
      const request = forged(route, example, ids, random);
      const credentials = random.pick<object>([
        { key },
        { key },
        { admin: server.admin },
        { worker: server.worker, lease: "x" },
        {},
        { key: random.pick(["", "svc_x", "a".repeat(9000), "svc_'--"]) },
      ]);
      const label = `seed ${SEED}: ${route.method} ${request.address.slice(0, 300)} ${JSON.stringify(request.headers).slice(0, 200)} ${String(request.raw).slice(0, 300)}`;
      const answer = await server.call(route.method, request.address, { ...credentials, ...request });
      expectOrderly(answer, label, route);
      sent++;
    }
    expect((await server.call("GET", "/healthz")).status, `after ${route.method} ${route.path}`).toBe(200);
  }
  expect(sent).toBe(routes.length * ROUNDS);
  expect((await server.call("GET", "/api/v1/assets", { key })).status).toBe(200);
  expect(server.stderr()).not.toMatch(/"level":(50|60)/);
});

/** One of each thing, for paths that lead somewhere. */
async function furnished(server: RunningServer) {
  const admin = (path: string, body: unknown) => server.call("POST", path, { admin: server.admin, body });
  const tenant = (await admin("/api/v1/admin/tenants", { name: "F", slug: "fuzzed" })).body;
  // What the operator's routes are aimed at, so that nobody suspends the tenant whose key is used.
  await admin("/api/v1/admin/tenants", { name: "T", slug: "target" });
  const scopes = ["assets:read", "assets:write", "playback:read", "api_keys:read", "api_keys:write"];
  const issue = async () => (await admin("/api/v1/api_keys", { tenant_id: tenant.id, scopes })).body.token as string;
  // Ids are guessed among the first few: those that may be revoked.
  for (let n = 0; n < 3; n++) await issue();
  return issue();
}

async function fresh(server: RunningServer, key: string) {
  const { asset } = await uploaded(server, key);
  return { asset: String(asset.id), external: asset.external_id as string };
}

type Forged = { address: string; headers: Record<string, string>; raw?: string | Uint8Array };

function forged(route: Route, example: unknown, ids: { asset: string; external: string }, random: Dice): Forged {
  const { next, pick } = random;
  const known = (name: string) =>
    name === "ref" ? "target" : pick([ids.asset, ids.asset, ids.external, "1", "2", pick(SEGMENTS)]);
  let address = route.path.replaceAll(/(?:\*\*)?:(\w+)/g, (_, name: string) => known(name));
  if (next() < 0.4) {
    const names = Object.keys((route.query as { entries?: object } | undefined)?.entries ?? { x: 0 });
    const query = new URLSearchParams();
    for (let n = 0; n < 3; n++) query.append(pick(names), String(pick(VALUES)).slice(0, 3000));
    address += next() < 0.1 ? "?%ff=%E0%A4&&==" : `?${query}`;
  }
  const headers: Record<string, string> = {};
  if (next() < 0.3) headers["idempotency-key"] = pick(["", "k", "x".repeat(256), "x".repeat(255), randomUUID(), "é"]);
  if (route.requiredHeaders && next() < 0.7) headers["idempotency-key"] = randomUUID();
  if (next() < 0.2) headers.range = pick(["bytes=0-0", "bytes=-1", "bytes=9-1", "lines=1-2", "bytes=0-,5-"]);
  if (route.path.includes("/tus") && next() < 0.9) {
    const offset = pick(["0", "1", "-1", "x", "9007199254740993"]);
    Object.assign(headers, { "tus-resumable": pick(["1.0.0", "1.0.0", "1"]), "upload-offset": offset });
    Object.assign(headers, {
      "upload-length": pick([offset, "10"]),
      "upload-metadata": pick(["", "filename YQ==", "a b c", ","]),
    });
    if (next() < 0.2) headers["upload-checksum"] = pick(["sha1 x", "sha1", "crc", "md5 "]);
    if (next() < 0.3) headers["x-http-method-override"] = pick(["PATCH", "DELETE", "HEAD", "x"]);
  }
  if (route.path.startsWith("/objects") && next() < 0.5)
    headers["content-range"] = pick(["bytes 0-1/2", "bytes */2", "x"]);
  if (route.method === "GET" || route.method === "HEAD") return { address, headers };
  const chance = next();
  headers["content-type"] = chance < 0.75 && !route.form ? "application/json" : pick(TYPES);
  if (chance < 0.2) return { address, headers, raw: pick(RAW) };
  return { address, headers, raw: JSON.stringify(mutated(example ?? {}, random)) };
}

/** What is not there yet to be asked is told so, by name. Nothing else of 500 or above is an answer. */
const ALLOWED = new Set(["translation_not_configured", "busy", "not_implemented"]);

function expectOrderly(answer: Answer, label: string, route: Route): void {
  if (answer.status >= 500 && ALLOWED.has(answer.body?.code)) return;
  expect(answer.status, label).toBeLessThan(500);
  if (answer.status < 400) {
    const type = answer.headers.get("content-type") ?? "";
    if (!route.hidden && answer.text !== "" && !route.produces) expect(type, label).toMatch(/^application\/json/);
    return;
  }
  if (route.method === "HEAD") return;
  // Pages tell people what is wrong, in words instead of JSON.
  if (answer.headers.get("content-type")?.startsWith("text/html")) return;
  expectError(answer, answer.status, answer.body?.code, label);
}
