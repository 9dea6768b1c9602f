import { execFileSync, spawn } from "node:child_process";
import { readFileSync, truncateSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { own } from "#scripts/build/paths.ts";
import { readDocument } from "#test/support/docs/document.ts";
import { atEnd, emptyFolder, newFolder, removeFolder } from "#test/support/folder.ts";
import { fast, ffmpeg, picture } from "#test/support/media/sources.ts";
import { nightly } from "#test/support/nightly.ts";
import { lineOf, type RunningServer, startServer, watched } from "#test/support/process.ts";
import { receiver } from "#test/support/receiver.ts";
import { type Relay, startRelay } from "#test/support/relay.ts";
import { newBucket, s3Server, s3Settings } from "#test/support/s3-server.ts";
import { type Installed, installedPackage, SYSTEM_PYTHON } from "./python-package.ts";

const MIB = 1024 * 1024;
const PART_BYTES = 16 * MIB;
const SCENARIOS = join(import.meta.dirname, "python/scenarios.py");

let installed: Installed;
/** For what needs no settings of its own. Each test has a tenant in it. */
let common: RunningServer;
beforeAll(async () => {
  common = await startServer(newFolder());
  installed = await installedPackage();
});
afterAll(async () => {
  common.child.kill("SIGKILL");
  await common.ended;
  for (const folder of [common.dataDir, installed.folder]) removeFolder(folder);
});

const environment = { PATH: "/usr/bin:/bin" } as unknown as NodeJS.ProcessEnv;

/** Runs a scenario to its end and returns what it prints. */
async function scenario(name: string, input: Record<string, unknown>): Promise<any> {
  const started = watched(
    spawn(installed.python, [SCENARIOS, name], { env: environment, stdio: ["pipe", "pipe", "pipe"] }),
  );
  started.child.stdin?.end(JSON.stringify(input));
  const { code, stdout, stderr } = await started.ended;
  if (code !== 0) throw new Error(`${name} ended with ${code}:\n${stderr}`);
  return JSON.parse(stdout);
}

type Tenant = { base: string; key: string; tenant_id: number; admin: string; server: RunningServer };

let tenants = 0;

/** A tenant on the pro plan and a key of it: of a server of its own, where that needs options or a relay. */
async function served(options?: Parameters<typeof startServer>[1], relay?: Relay): Promise<Tenant> {
  const env = { ...options?.env, ...(relay && { VODBOX_BASE_URL: relay.base }) };
  const server = options ? await startServer(emptyFolder(), { ...options, env }) : common;
  if (relay) relay.lead(Number(new URL((await lineOf(server, /^listening on (\S+)$/m))[1] as string).port));
  const { as, base, admin } = server;
  const tenant = await as({ admin }).createTenant({ name: "Acme", slug: `acme-${++tenants}` });
  const key = await keyFor(server, tenant.body.id);
  return { base, key, tenant_id: tenant.body.id, admin, server };
}

const SCOPES = "assets:read assets:write playback:read api_keys:read api_keys:write webhooks:read webhooks:write".split(
  " ",
);

async function keyFor({ as, admin }: RunningServer, tenant_id: number, scopes = SCOPES): Promise<string> {
  const created = await as({ admin }).createApiKey({ tenant_id, scopes });
  if (created.status !== 201) throw new Error(created.text);
  return created.body.token;
}

/** The examples of the documentation, in their order. */
const documented = () =>
  [...readDocument("docs/clients-python.md").matchAll(/^```python\n([\s\S]*?)^```$/gm)].map(([, code]) => code);

describe("the package", () => {
  const inspect = `
import importlib.metadata, json
found = importlib.metadata.distribution("vodbox")
print(json.dumps({"version": found.version, "requires": found.requires, "typed": [str(f) for f in found.files if f.name == "py.typed"]}))`;

  test("is installed by pip from the wheel, with its version and requirements", () => {
    const shown = JSON.parse(execFileSync(installed.python, ["-c", inspect], { env: environment }).toString());
    expect(shown).toEqual({
      version: own.version,
      requires: [
        "httpx (>=0.23)",
        'PyJWT (>=2.4) ; extra == "signing"',
        'cryptography (>=38) ; extra == "signing"',
      ].map((each) => expect.stringMatching(new RegExp(each.replaceAll(/[()]/g, "\\$&?").replaceAll(" ", " ?")))),
      typed: ["vodbox/py.typed"],
    });
  });

  nightly("is built by pip from the source distribution, with the same files", () => {
    const target = emptyFolder();
    const offline = ["--quiet", "--no-index", "--no-deps", "--no-build-isolation", "--target", target];
    execFileSync(SYSTEM_PYTHON, ["-m", "pip", "install", ...offline, installed.sdist]);
    const compare = `
import sys, zipfile, pathlib
wheel = zipfile.ZipFile(sys.argv[1])
assert wheel.testzip() is None
names = [name for name in wheel.namelist() if name.startswith("vodbox/")]
print(len(names), all(wheel.read(name) == pathlib.Path(sys.argv[2], name).read_bytes() for name in names))`;
    const args = ["-c", compare, installed.wheel, target];
    expect(execFileSync(SYSTEM_PYTHON, args).toString()).toMatch(/^1\d True\n$/);
  });

  nightly("and the examples of its documentation pass mypy in strict mode, for the oldest Python too", () => {
    const folder = emptyFolder();
    expect(documented().length).toBeGreaterThan(4);
    writeFileSync(join(folder, "examples.py"), documented().join("\n"));
    const site = execFileSync(installed.python, ["-c", "import vodbox; print(vodbox.__path__[0])"]).toString().trim();
    execFileSync("cp", ["-r", site, join(folder, "vodbox")]);
    const cache = ["--cache-dir", join(folder, "cache")];
    for (const version of ["3.9", "3.11"])
      execFileSync("/usr/bin/mypy", ["--strict", ...cache, "--python-version", version, "vodbox", "examples.py"], {
        cwd: folder,
        env: environment,
      });
  });
});

type Planned = [status: number, headers: Record<string, string>, body?: string];

/** A server that answers the requests in this order, and all further ones with 204. */
async function planning(responses: Planned[]): Promise<{ base: string; requests: () => number }> {
  let requests = 0;
  const server = createServer((_, response) => {
    const [status, headers, body] = responses[requests++] ?? [204, {}];
    response.writeHead(status, headers).end(body);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  atEnd(() => server.close());
  return { base: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, requests: () => requests };
}

describe("the API", () => {
  test("has a documented method for each operation", async () => {
    const { base } = await served();
    const { count, missing, undocumented } = await scenario("operations", { base });
    expect(count).toBeGreaterThan(140);
    expect({ missing, undocumented }).toEqual({ missing: [], undocumented: [] });
  });

  test("creates, lists, changes and deletes", async () => {
    const { base, key, tenant_id } = await served();
    const found = await scenario("records", { base, key, tenant_id });
    expect(found).toEqual({
      pages: [["Film 4", "Film 3"], ["Film 2", "Film 1"], ["Film 0"]],
      all: ["Once", "Film 4", "Film 3", "Film 2", "Épisode “1”"],
      continued: ["Film 2", "Épisode “1”"],
      changed: ["Épisode “1”", null, {}, { year: 2026, draft: true }, true],
      same: true,
      subtitle: ["English", true],
      unmatched: ["not_found"],
      exported: "title,description,tags,original_filename",
      deleted: expect.objectContaining({ class: "NotFoundError", status: 404 }),
    });
  });

  test("raises errors by kind", async () => {
    const { base, key, tenant_id, server } = await served();
    const reader = await keyFor(server, tenant_id, ["assets:read"]);
    const { path, ...found } = await scenario("errors", { base, key, tenant_id, reader });
    const of = (name: string, status: number | null, code: string, more = {}) =>
      expect.objectContaining({ class: name, status, code, ...more });
    expect(found).toEqual({
      not_found: of("NotFoundError", 404, "not_found", { request_id: expect.stringMatching(/^req_/) }),
      invalid: of("InvalidRequestError", 422, "validation_failed", {
        details: { "video_asset.title": [expect.any(String)] },
      }),
      conflict: of("ConflictError", 409, "asset_conflict"),
      unauthorized: of("AuthenticationError", 401, "unauthorized"),
      none: of("AuthenticationError", 401, "unauthorized"),
      forbidden: of("ForbiddenError", 403, "forbidden_scope"),
      unreachable: of("ConnectionFailed", null, "connection_failed"),
    });
    expect(path).toBe("ValueError");
  });

  test("repeats a request whose response was lost, and each asset is created once", async () => {
    const relay = await startRelay();
    const { base, key, tenant_id } = await served();
    relay.lead(Number(new URL(base).port));
    // After the request reached the server.
    relay.cutAfter(1, 3);
    expect(await scenario("retries", { base: relay.base, key, tenant_id })).toEqual({
      ids: 4,
      titles: ["Retried 0", "Retried 1", "Retried 2", "Retried 3"],
    });
    expect(relay.cuts()).toBe(3);
  });

  nightly("waits as long as Retry-After, and repeats nothing else that is unsafe", async () => {
    const attempt = async (...planned: Planned[]) => {
      const { base, requests } = await planning(planned);
      return { ...(await scenario("fragile", { base, key: "svc_any" })), requests: requests() };
    };

    const waited = await attempt([429, { "retry-after": "1" }], [503, { "retry-after": "0" }]);
    expect(waited).toMatchObject({ outcome: null, requests: 3 });
    expect(waited.seconds).toBeGreaterThanOrEqual(1);
    expect(await attempt([502, {}])).toMatchObject({
      outcome: { class: "ServerError", status: 502, code: "http_502" },
      requests: 1,
    });
    // Longer than a caller waits.
    expect(await attempt([503, { "retry-after": "3600" }])).toMatchObject({
      outcome: { class: "ServerError" },
      requests: 1,
    });
    expect(await attempt([429, {}], [429, {}], [429, {}])).toMatchObject({
      outcome: { class: "RateLimitedError", status: 429 },
      requests: 3,
    });
  });
});

test("responses of other servers are errors", async () => {
  const html = { "content-type": "text/html" };
  const page = "<!doctype html><title>Welcome</title>";
  const { base } = await planning([
    [301, { location: "https://video.example.com/" }],
    [200, html, page],
    [200, html, page],
    [504, html, page],
  ]);
  const found = await scenario("unexpected", { base, key: "svc_any" });
  const other = { class: "VodboxError", status: 200, code: "invalid_response" };
  expect(found).toMatchObject({
    redirect: { class: "VodboxError", code: "http_301", text: expect.stringContaining("https://video.example.com/") },
    html: other,
    list: other,
    gateway: { class: "ServerError", code: "http_504" },
  });
});

describe("an upload", () => {
  test("sends a clip with progress, waits until it plays, and its tokens work", async () => {
    const { base, key, tenant_id } = await served({ args: ["--workers", "1"] });
    const folder = emptyFolder();
    const file = join(folder, "clip.mp4");
    await ffmpeg(...picture("320x180", "25", 2), ...fast, "-pix_fmt", "yuv420p", file);
    const text = join(folder, "text.mp4");
    writeFileSync(text, "This is not a video. ".repeat(1000));
    const { asset, seen, other, unknown, failed } = await scenario("upload", { base, key, file, text });
    const bytes = readFileSync(file).length;
    expect(asset).toMatchObject({ title: "Clip", playback_status: "ready", source_bytes: bytes, tags: { year: 2026 } });
    expect(seen.at(-1)).toEqual([bytes, bytes]);
    expect(other).toEqual(["Open file", "clip.mp4"]);
    expect(unknown).toBe("TypeError");
    expect(failed).toMatchObject({ class: "AssetFailed", code: expect.stringMatching(/^[a-z_]+$/) });

    const signed = await scenario("tokens", { base, key, tenant_id, asset: asset.id });
    for (const tokens of Object.values(signed) as Record<string, string>[]) {
      const statuses: Record<string, number> = {};
      for (const [name, token] of Object.entries(tokens)) {
        const url = `${base}/media/${asset.external_id}/master.m3u8?token=${token}`;
        statuses[name] = (await fetch(url)).status;
      }
      const refused = { expired: 403, thumbnail: 403, future: 403, other: 403 };
      expect(statuses).toEqual({ valid: 200, number: 200, ...refused });
    }
  });

  nightly("and the other examples of the documentation work", async () => {
    const { base, key, tenant_id, server } = await served({ args: ["--workers", "1"] });
    const folder = emptyFolder();
    await ffmpeg(...picture("320x180", "25", 1), ...fast, "-pix_fmt", "yuv420p", join(folder, "holiday.mp4"));
    const created = await server.as(key).createSigningKey({ tenant_id });
    const { key_id: SIGNING_KEY_ID, private_key: SIGNING_PRIVATE_KEY } = created.body;
    const code = `${documented().join("\n").replaceAll("http://127.0.0.1:8080", base)}\nprint(token)\n`;
    const env = { ...environment, VODBOX_KEY: key, SIGNING_KEY_ID, SIGNING_PRIVATE_KEY };
    const ended = await watched(spawn(installed.python, ["-c", code], { cwd: folder, env, stdio: "pipe" })).ended;
    expect(ended).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/^There is no such asset\.\n(\d+ %\n)+http/),
    });
    const [url = "", token] = ended.stdout.trim().split("\n").slice(-2);
    expect((await fetch(url)).status).toBe(200);
    expect((await fetch(`${url.split("?")[0]}?token=${token}`)).status).toBe(200);
  });

  test("resumes after kill -9, and sends at most one part twice", async () => {
    const relay = await startRelay();
    const { key, server } = await served({}, relay);
    const folder = emptyFolder();
    const file = join(folder, "large.mp4");
    const state = join(folder, "large.upload");
    const size = 5 * PART_BYTES + 12_345;
    writeFileSync(file, Buffer.alloc(size, "vodbox"));
    const input = { base: relay.base, key, file, state };

    expect(await scenario("unsaved", input)).toEqual({ left: true });
    for (const stopAt of [1, 1.5 * PART_BYTES, 4.2 * PART_BYTES]) {
      const options = JSON.stringify({ ...input, stop_at: stopAt });
      const first = watched(
        spawn(installed.python, [SCENARIOS, "interrupted", options], { env: environment, stdio: "pipe" }),
      );
      await lineOf(first, /^reached$/);
      first.child.kill("SIGKILL");
      expect((await first.ended).signal).toBe("SIGKILL");
    }
    const beforeLast = relay.sent();
    const { asset, first, status, left } = await scenario("resumed", input);
    expect({ status, left }).toEqual({ status: "uploaded", left: false });
    // Four parts are complete.
    expect(first).toBe(PART_BYTES);
    expect(relay.sent() - beforeLast).toBeLessThan(size - 4 * PART_BYTES + MIB);
    // Three interruptions, each at most one part.
    expect(relay.sent()).toBeLessThan(size + 3 * PART_BYTES);
    const download = await server.as(key).getDownload(asset);
    const stored = Buffer.from(await (await fetch(download.body.url)).arrayBuffer());
    expect(stored.equals(readFileSync(file))).toBe(true);
    const assets = await server.as(key).listAssets();
    expect(assets.body.length).toBe(1);
  });

  nightly("works with S3, and sends the key to the server only", async () => {
    const s3 = await s3Server();
    const bucket = newBucket("python");
    await s3.bucket(bucket);
    const { base, key, server } = await served({
      env: {
        ...s3Settings(s3, bucket),
      },
    });
    const file = join(emptyFolder(), "film.mp4");
    const size = PART_BYTES + 12_345;
    writeFileSync(file, Buffer.alloc(size, "vodbox"));
    const { asset, ...found } = await scenario("headers", { base, key, file });
    expect(found).toEqual({ bytes: size, parts: 2, others: [] });
    const download = await server.as(key).getDownload(asset);
    expect(download.body.url).toContain(s3.endpoint);
    const stored = Buffer.from(await (await fetch(download.body.url)).arrayBuffer());
    expect(stored.equals(readFileSync(file))).toBe(true);
  });

  nightly("sends a part again when its connection breaks", async () => {
    const relay = await startRelay();
    const { key } = await served({}, relay);
    const file = join(emptyFolder(), "torn.mp4");
    const size = PART_BYTES + 12_345;
    writeFileSync(file, Buffer.alloc(size, "vodbox"));
    relay.cutAfter(5 * MIB, 2);
    expect(await scenario("torn", { base: relay.base, key, file })).toEqual({ status: "uploaded", bytes: size });
    expect(relay.cuts()).toBe(2);
    expect(relay.sent()).toBeLessThan(size + 2 * PART_BYTES);
  });

  nightly("uses as much memory for 1 GB as for 1 MB", async () => {
    const { base, key } = await served();
    const folder = emptyFolder();
    const small = join(folder, "small.mp4");
    const large = join(folder, "large.mp4");
    for (const [path, bytes] of [
      [small, MIB],
      [large, 1024 * MIB],
    ] as const) {
      writeFileSync(path, "");
      truncateSync(path, bytes);
    }
    const { grown, peak, bytes } = await scenario("memory", { base, key, small, large });
    console.info(
      `Peak of an upload of 1 GiB: ${Math.round(peak / MIB)} MiB, ${Math.round(grown / 1024)} KiB more than of 1 MiB`,
    );
    expect(bytes).toBe(1024 * MIB);
    expect(grown).toBeLessThan(8 * MIB);
  });
});

test("verifies real deliveries, and refuses forged and old ones", async () => {
  const { base, key, tenant_id, server } = await served({ env: { VODBOX_WEBHOOK_ALLOW_CIDRS: "127.0.0.0/8" } });
  const delivered = Promise.withResolvers<void>();
  const target = await receiver(() => delivered.resolve());
  const body = { url: target.url, events: ["video.asset.ready"], tenant_id };
  const endpoint = await server.as(key).createWebhook(body);
  expect(endpoint.status, endpoint.text).toBe(201);
  await server.as(key).testWebhook(endpoint.body.id, {});
  await delivered.promise;
  const [delivery] = target.received;
  const input = { base, body: delivery?.body, headers: delivery?.headers, secret: endpoint.body.secret };
  const { event, refused, no_secret, ...accepted } = await scenario("webhook", input);
  expect(event).toEqual(delivery?.json);
  const id = delivery?.json.id;
  expect(accepted).toEqual({ bytes: id, pairs: id, rotated: id, tolerant: id });
  for (const [name, outcome] of Object.entries(refused))
    expect([name, outcome]).toEqual([name, expect.objectContaining({ class: "WebhookVerificationError" })]);
  expect(no_secret).toBe("ValueError");
});
