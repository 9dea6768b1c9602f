import { execFileSync, spawn } from "node:child_process";
import { globSync, readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { own } from "#scripts/build/paths.ts";
import { phpPackageName, writePhpPackage } from "#scripts/clients/php/package.ts";
import { readDocument } from "#test/support/docs/document.ts";
import { atEnd, emptyFolder, newFolder, removeFolder } from "#test/support/folder.ts";
import { fast, ffmpeg, picture } from "#test/support/media/sources.ts";
import { nightly } from "#test/support/nightly.ts";
import { lineOf, type RunningServer, startServer, watched } from "#test/support/process.ts";
import { receiver } from "#test/support/receiver.ts";
import { startRelay } from "#test/support/relay.ts";

const MIB = 1024 * 1024;
const PART_BYTES = 16 * MIB;
const SCENARIOS = join(import.meta.dirname, "php/scenarios.php");

let server: RunningServer;
let folder: string;
/** The unpacked package. */
let installed: string;
beforeAll(async () => {
  folder = newFolder();
  await writePhpPackage(folder);
  installed = join(folder, "client");
  execFileSync("/usr/bin/python3", ["-m", "zipfile", "-e", join(folder, phpPackageName), installed]);
  server = await startServer(newFolder(), {
    args: ["--workers", "1"],
    env: { VODBOX_WEBHOOK_ALLOW_CIDRS: "127.0.0.0/8" },
  });
});
afterAll(async () => {
  server.child.kill("SIGKILL");
  await server.ended;
  for (const each of [server.dataDir, folder]) removeFolder(each);
});

const start = (args: string[], options: { cwd?: string; env?: Record<string, string> } = {}) => {
  const env = { PATH: "/usr/bin:/bin", VODBOX_PHP: installed, ...options.env } as unknown as NodeJS.ProcessEnv;
  return watched(spawn("/usr/bin/php", args, { ...options, env, stdio: "pipe" }));
};

/** Runs a scenario to its end and returns what it prints. */
async function scenario(name: string, input: Record<string, unknown>): Promise<any> {
  const started = start([SCENARIOS, name]);
  started.child.stdin?.end(JSON.stringify(input));
  const { code, stdout, stderr } = await started.ended;
  if (code !== 0) throw new Error(`${name} ended with ${code}:\n${stdout}${stderr}`);
  return JSON.parse(stdout);
}

let tenants = 0;
const SCOPES = ["assets:read", "assets:write", "playback:read", "api_keys:write", "webhooks:write"];

async function keyFor(tenant_id: number, scopes = SCOPES): Promise<string> {
  const created = await server.as({ admin: server.admin }).createApiKey({ tenant_id, scopes });
  expect(created.status, created.text).toBe(201);
  return created.body.token;
}

/** A new tenant of the server, and a key of it. */
async function tenant(): Promise<{ base: string; key: string; tenant_id: number }> {
  const { admin, base } = server;
  const body = { name: "Acme", slug: `acme-${++tenants}` };
  const made = await server.as({ admin }).createTenant(body);
  return { base, key: await keyFor(made.body.id), tenant_id: made.body.id };
}

/** The examples of the documentation, in their order. */
const documented = () =>
  [...readDocument("docs/clients-php.md").matchAll(/^```php\n([\s\S]*?)^```$/gm)].map(([, code]) => code as string);

describe("the package", () => {
  test("has the version of the program, and files and examples that PHP can read", () => {
    expect(JSON.parse(readFileSync(join(installed, "composer.json"), "utf8"))).toMatchObject({
      name: "vodbox/client",
      version: own.version,
      license: "MIT",
    });
    const files = globSync("src/*.php", { cwd: installed }).map((name) => join(installed, name));
    expect(files.length).toBeGreaterThan(10);
    const examples = join(emptyFolder(), "examples.php");
    expect(documented().length).toBeGreaterThan(4);
    writeFileSync(examples, `<?php\n${documented().join("\n")}`);
    for (const file of [...files, examples])
      expect(execFileSync("/usr/bin/php", ["-l", file]).toString()).toContain("No syntax errors");
  });

  nightly("is installed by Composer from the archive", () => {
    const project = emptyFolder();
    const require = { "vodbox/client": own.version };
    const repositories = [{ type: "artifact", url: folder }, { "packagist.org": false }];
    writeFileSync(join(project, "composer.json"), JSON.stringify({ repositories, require }));
    const env = { ...process.env, COMPOSER_ALLOW_SUPERUSER: "1", COMPOSER_HOME: emptyFolder() };
    execFileSync("/usr/bin/composer", ["install", "--no-interaction", "--quiet"], { cwd: project, env });
    const code = "require 'vendor/autoload.php'; echo Vodbox\\Client::VERSION;";
    expect(execFileSync("/usr/bin/php", ["-r", code], { cwd: project }).toString()).toBe(own.version);
  });
});

describe("the API", () => {
  test("has a documented method for each operation", async () => {
    const { count, missing, undocumented } = await scenario("operations", { base: server.base });
    expect(count).toBeGreaterThan(140);
    expect({ missing, undocumented }).toEqual({ missing: [], undocumented: [] });
  });

  test("creates, lists, changes and deletes", async () => {
    expect(await scenario("records", await tenant())).toEqual({
      pages: [["Film 4", "Film 3"], ["Film 2", "Film 1"], ["Film 0"]],
      all: ["Once", "Film 4", "Film 3", "Film 2", "Épisode “1”"],
      continued: ["Film 2", "Épisode “1”"],
      changed: ["Épisode “1”", null, { year: 2026, draft: true }, true],
      found: true,
      none: null,
      same: true,
      subtitle: ["English", true],
      unmatched: ["not_found"],
      exported: "title,description,tags,original_filename",
      deleted: [null, expect.objectContaining({ status: 404 })],
    });
  });

  test("throws errors with what the server says", async () => {
    const given = await tenant();
    const found = await scenario("errors", { ...given, reader: await keyFor(given.tenant_id, ["assets:read"]) });
    const error = (status: number | null, errorCode: string, more = {}) =>
      expect.objectContaining({ class: "Vodbox\\VodboxException", status, errorCode, ...more });
    expect(found).toEqual({
      not_found: error(404, "not_found", { requestId: expect.stringMatching(/^req_/) }),
      invalid: error(422, "validation_failed", { details: { "video_asset.title": [expect.any(String)] } }),
      conflict: error(409, "asset_conflict"),
      unauthorized: error(401, "unauthorized"),
      none: error(401, "unauthorized"),
      forbidden: error(403, "forbidden_scope"),
      unreachable: error(null, "connection_failed"),
      scheme: error(null, "connection_failed"),
      path: expect.objectContaining({ class: "InvalidArgumentException" }),
    });
  });

  test("repeats what is safe to repeat, waits as long as Retry-After, and takes no other server's page for a result", async () => {
    const html = { "content-type": "text/html" };
    const page = "<!doctype html><title>Welcome</title>";
    const plan: [status: number, headers: Record<string, string>, body?: string][] = [];
    const calls: [method: string, args: unknown[], retries: number][] = [];
    /** The next call, and the responses that it meets. */
    const meets = (method: string, args: unknown[], ...responses: typeof plan) => {
      calls.push([method, args, 2]);
      plan.push(...responses);
    };
    meets("revokeApiKey", [1], [429, { "retry-after": "1" }], [503, { "retry-after": "0" }], [204, {}]);
    meets("revokeApiKey", [1], [502, {}]);
    meets("revokeApiKey", [1], [503, { "retry-after": "3600" }]);
    meets("getAsset", [1], [502, {}], [504, html, page], [200, { "content-type": "application/json" }, "{}"]);
    meets("getAsset", [1], [301, { location: "https://video.example.com/" }]);
    meets("getAsset", [1], [200, html, page]);
    meets("listAssets", [], [200, html, page]);
    let requests = 0;
    const other = createServer((_, response) => {
      const [status, headers, body] = plan[requests++] ?? [500, {}];
      response.writeHead(status, headers).end(body);
    });
    await new Promise<void>((resolve) => other.listen(0, "127.0.0.1", resolve));
    atEnd(() => other.close());
    const base = `http://127.0.0.1:${(other.address() as AddressInfo).port}`;
    const results = await scenario("planned", { base, key: "svc_any", calls });
    expect(results.map(({ refusal }: any) => refusal?.errorCode ?? null)).toEqual([
      null,
      "http_502",
      "http_503",
      null,
      "http_301",
      "invalid_response",
      "invalid_response",
    ]);
    expect(results[0].seconds).toBeGreaterThanOrEqual(1);
    expect(results[4].refusal.text).toContain("https://video.example.com/");
    expect(requests).toBe(plan.length);
  });
});

describe("an upload", () => {
  test("sends a clip with progress, waits until it plays, and its tokens work", async () => {
    const given = await tenant();
    const files = emptyFolder();
    const file = join(files, "clip.mp4");
    await ffmpeg(...picture("320x180", "25", 2), ...fast, "-pix_fmt", "yuv420p", file);
    const text = join(files, "text.mp4");
    writeFileSync(text, "This is not a video. ".repeat(1000));
    const { asset, seen, other, missing, failed } = await scenario("upload", { ...given, file, text });
    const bytes = readFileSync(file).length;
    expect(asset).toMatchObject({ title: "Clip", playback_status: "ready", source_bytes: bytes, tags: { year: 2026 } });
    expect(seen.at(-1)).toEqual([bytes, bytes]);
    expect(other).toEqual(["Open file", "clip.mp4", true]);
    expect(missing).toMatchObject({ class: "InvalidArgumentException" });
    expect(failed).toMatchObject({ class: "Vodbox\\AssetFailed", errorCode: expect.stringMatching(/^[a-z_]+$/) });

    const { refused, ...signed } = await scenario("tokens", { ...given, asset: asset.id });
    for (const tokens of Object.values(signed) as Record<string, string>[]) {
      const statuses: Record<string, number> = {};
      for (const [name, token] of Object.entries(tokens)) {
        const url = `${given.base}/media/${asset.external_id}/master.m3u8?token=${token}`;
        statuses[name] = (await fetch(url)).status;
      }
      const none = { expired: 403, thumbnail: 403, future: 403, other: 403 };
      expect(statuses).toEqual({ valid: 200, number: 200, ...none });
    }
    expect(refused).toEqual(Array(3).fill("InvalidArgumentException"));
  });

  test("resumes after kill -9, and sends at most one part twice", async () => {
    const relay = await startRelay();
    const own = await startServer(emptyFolder(), { env: { VODBOX_BASE_URL: relay.base } });
    relay.lead(Number(new URL((await lineOf(own, /^listening on (\S+)$/m))[1] as string).port));
    const { admin } = own;
    const made = await own.as({ admin }).createTenant({ name: "Acme", slug: "acme" });
    const body = { tenant_id: made.body.id, scopes: SCOPES };
    const key = (await own.as({ admin }).createApiKey(body)).body.token;
    const files = emptyFolder();
    const file = join(files, "large.mp4");
    const state = join(files, "large.upload");
    const size = 3 * PART_BYTES + 12_345;
    writeFileSync(file, Buffer.alloc(size, "vodbox"));
    const input = { base: relay.base, key, file, state };
    for (const stop_at of [1.5 * PART_BYTES, 2.2 * PART_BYTES]) {
      const first = start([SCENARIOS, "interrupted"]);
      first.child.stdin?.end(JSON.stringify({ ...input, stop_at }));
      await lineOf(first, /^reached$/);
      first.child.kill("SIGKILL");
      expect((await first.ended).signal).toBe("SIGKILL");
    }
    const beforeLast = relay.sent();
    const { asset, first, status, left, peak } = await scenario("resumed", input);
    expect({ status, left }).toEqual({ status: "uploaded", left: false });
    // Two parts are complete.
    expect(first).toBe(PART_BYTES);
    expect(relay.sent() - beforeLast).toBeLessThan(size - 2 * PART_BYTES + MIB);
    // A part is never in memory.
    expect(peak).toBeLessThan(PART_BYTES);
    const download = await own.as(key).getDownload(asset);
    const stored = Buffer.from(await (await fetch(download.body.url)).arrayBuffer());
    expect(stored.equals(readFileSync(file))).toBe(true);
    expect((await own.as(key).listAssets()).body).toHaveLength(1);
  });
});

test("verifies real deliveries, and refuses forged and old ones", async () => {
  const { base, key, tenant_id } = await tenant();
  const delivered = Promise.withResolvers<void>();
  const target = await receiver(() => delivered.resolve());
  const body = { url: target.url, events: ["video.asset.ready"], tenant_id };
  const endpoint = await server.as(key).createWebhook(body);
  expect(endpoint.status, endpoint.text).toBe(201);
  await server.as(key).testWebhook(endpoint.body.id, {});
  await delivered.promise;
  const [delivery] = target.received;
  const signature = delivery?.headers["svc-signature"];
  const input = { base, body: delivery?.body, signature, secret: endpoint.body.secret };
  const { event, refused, no_secret, ...accepted } = await scenario("webhook", input);
  expect(event).toEqual(delivery?.json);
  const id = delivery?.json.id;
  expect(accepted).toEqual({ rotated: id, tolerant: id });
  for (const [name, outcome] of Object.entries(refused))
    expect([name, outcome]).toEqual([name, expect.objectContaining({ class: "Vodbox\\WebhookException" })]);
  expect(no_secret).toMatchObject({ class: "InvalidArgumentException" });
});

test("the examples of the documentation work", async () => {
  const { base, key, tenant_id } = await tenant();
  const files = emptyFolder();
  await ffmpeg(...picture("320x180", "25", 1), ...fast, "-pix_fmt", "yuv420p", join(files, "holiday.mp4"));
  const created = await server.as(key).createSigningKey({ tenant_id });
  const { key_id: SIGNING_KEY_ID, private_key: SIGNING_PRIVATE_KEY } = created.body;
  const examples = documented()
    .join("\n")
    .replaceAll("http://127.0.0.1:8080", base)
    .replaceAll("'tenant_id' => 1", `'tenant_id' => ${tenant_id}`)
    .replaceAll("require 'vendor/autoload.php';", "");
  const uses = (examples.match(/^use .*;\n/gm) ?? []).join("");
  const code = examples.replaceAll(/^use .*;\n/gm, "");
  const load = `spl_autoload_register(fn ($class) => require getenv('VODBOX_PHP') . '/src/' . substr($class, 7) . '.php');`;
  writeFileSync(join(files, "examples.php"), `<?php\n${uses}${load}\n${code}\necho "\\n", $token;`);
  const env = { VODBOX_KEY: key, SIGNING_KEY_ID, SIGNING_PRIVATE_KEY };
  const ended = await start([join(files, "examples.php")], { cwd: files, env }).ended;
  expect(ended, ended.stdout + ended.stderr).toMatchObject({
    code: 0,
    stdout: expect.stringMatching(/^There is no such asset\.\n(\d+ %\n)+http/),
  });
  const [url = "", token] = ended.stdout.trim().split("\n").slice(-2);
  expect((await fetch(url)).status).toBe(200);
  expect((await fetch(`${url.split("?")[0]}?token=${token}`)).status).toBe(200);
});
