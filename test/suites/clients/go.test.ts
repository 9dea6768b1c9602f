import { execFileSync, spawn } from "node:child_process";
import { copyFileSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { own } from "#scripts/build/paths.ts";
import { openApiDocument } from "#scripts/clients/document.ts";
import { goPackageName, writeGoPackage } from "#scripts/clients/go/package.ts";
import { isNightly } from "#test/support/amount.ts";
import { readDocument } from "#test/support/docs/document.ts";
import { atEnd, emptyFolder, newFolder, removeFolder } from "#test/support/folder.ts";
import { fast, ffmpeg, picture } from "#test/support/media/sources.ts";
import { nightly } from "#test/support/nightly.ts";
import { lineOf, type RunningServer, startServer, watched } from "#test/support/process.ts";
import { receiver } from "#test/support/receiver.ts";
import { startRelay } from "#test/support/relay.ts";

const MIB = 1024 * 1024;
const PART_BYTES = 16 * MIB;

let folder: string;
/** The unpacked module. */
let module: string;
let server: RunningServer;
/** The compiled scenarios. */
let program: string;

/** Compiles a program that requires the module, without a network. */
function compiled(name: string, source: string): string {
  const project = join(folder, name);
  mkdirSync(project);
  writeFileSync(join(project, "main.go"), source);
  const requires = `require vodbox/client v${own.version}\n\nreplace vodbox/client => ../client\n`;
  writeFileSync(join(project, "go.mod"), `module ${name}\n\ngo 1.19\n\n${requires}`);
  go(["build", "-o", name, "."], project);
  return join(project, name);
}

const go = (args: string[], cwd: string) =>
  execFileSync("/usr/bin/go", args, { cwd, env: { ...process.env, GOFLAGS: "-mod=mod", GOPROXY: "off" } }).toString();

beforeAll(async () => {
  folder = newFolder();
  await writeGoPackage(folder);
  module = join(folder, "client");
  execFileSync("/usr/bin/python3", ["-m", "zipfile", "-e", join(folder, goPackageName), module]);
  if (!isNightly) return;
  program = compiled("scenarios", readFileSync(join(import.meta.dirname, "go/main.go"), "utf8"));
  server = await startServer(newFolder(), {
    args: ["--workers", "1"],
    env: { VODBOX_WEBHOOK_ALLOW_CIDRS: "127.0.0.0/8" },
  });
});
afterAll(async () => {
  server?.child.kill("SIGKILL");
  await server?.ended;
  for (const each of [folder, ...(server ? [server.dataDir] : [])]) removeFolder(each);
});

const start = (name: string, input: Record<string, unknown>) => {
  const started = watched(spawn(program, [name], { stdio: "pipe" }));
  started.child.stdin?.end(JSON.stringify(input));
  return started;
};

/** Runs a scenario to its end and returns what it prints. */
async function scenario(name: string, input: Record<string, unknown>): Promise<any> {
  const { code, stdout, stderr } = await start(name, input).ended;
  if (code !== 0) throw new Error(`${name} ended with ${code}:\n${stderr}`);
  return JSON.parse(stdout);
}

let tenants = 0;
const SCOPES = ["assets:read", "assets:write", "playback:read", "api_keys:write", "webhooks:write"];

async function keyFor(at: RunningServer, tenant_id: number, scopes = SCOPES): Promise<string> {
  const created = await at.as({ admin: at.admin }).createApiKey({ tenant_id, scopes });
  expect(created.status, created.text).toBe(201);
  return created.body.token;
}

/** A new tenant of a server, and a key of it. */
async function tenant(at = server): Promise<{ base: string; key: string; tenant_id: number }> {
  const body = { name: "Acme", slug: `acme-${++tenants}` };
  const made = await at.as({ admin: at.admin }).createTenant(body);
  return { base: at.base, key: await keyFor(at, made.body.id), tenant_id: made.body.id };
}

test("the module has a documented method for each operation", async () => {
  const document = await openApiDocument();
  const ids = Object.values(document.paths ?? {}).flatMap((path) =>
    Object.values(path as Record<string, { operationId: string }>).map(({ operationId }) => operationId),
  );
  const text = readFileSync(join(module, "operations.go"), "utf8");
  const methods = [...text.matchAll(/^\/\/ (\w+): .*\n(?:\/\/.*\n)*func \(c \*Client\) (\w+)\(/gm)];
  expect(methods.every(([, documented, name]) => documented === name)).toBe(true);
  const plain = (name: string) => name.toLowerCase();
  expect(methods.map(([, name]) => plain(name as string)).sort()).toEqual(ids.map(plain).sort());
  expect(readFileSync(join(module, "client.go"), "utf8")).toContain(`Version = "${own.version}"`);
});

nightly("its files are formatted, and pass the checks of Go", () => {
  expect(execFileSync("/usr/bin/gofmt", ["-l", "."], { cwd: module }).toString()).toBe("");
  expect(go(["vet", "./..."], module)).toBe("");
});

nightly("it creates, lists, changes and deletes", async () => {
  expect(await scenario("records", await tenant())).toEqual({
    pages: [["Film 4", "Film 3"], ["Film 2", "Film 1"], ["Film 0"]],
    all: ["Once", "Film 4", "Film 3", "Film 2", "Épisode “1”"],
    continued: ["Film 2", "Épisode “1”"],
    changed: ["Épisode “1”", "About it", "Épisode “1”", null, { year: 2026, draft: true }],
    same: true,
    subtitle: ["English", true],
    unmatched: "not_found",
    exported: "title,description,tags,original_filename",
    gone: true,
  });
});

nightly("its errors have what the server says", async () => {
  const given = await tenant();
  const reader = await keyFor(server, given.tenant_id, ["assets:read"]);
  const error = (status: number, code: string, more = {}) =>
    expect.objectContaining({ kind: "error", status, code, ...more });
  expect(await scenario("failures", { ...given, reader })).toEqual({
    not_found: error(404, "not_found", { request_id: expect.stringMatching(/^req_/) }),
    invalid: error(422, "validation_failed", { details: { "video_asset.title": [expect.any(String)] } }),
    unauthorized: error(401, "unauthorized"),
    forbidden: error(403, "forbidden_scope"),
    unreachable: error(0, "connection_failed"),
    path: expect.objectContaining({ kind: "other" }),
    canceled: true,
  });
});

nightly(
  "it repeats what is safe to repeat, waits as long as Retry-After, and takes no other server's page for a result",
  async () => {
    const html = { "content-type": "text/html" };
    const page = "<!doctype html><title>Welcome</title>";
    const plan: [status: number, headers: Record<string, string>, body?: string][] = [
      ...([
        [429, { "retry-after": "1" }],
        [503, { "retry-after": "0" }],
        [204, {}],
      ] as [number, Record<string, string>][]),
      [502, {}],
      [503, { "retry-after": "3600" }],
      [502, {}],
      [504, html, page],
      [200, { "content-type": "application/json" }, "{}"],
      [301, { location: "https://video.example.com/" }],
      [200, html, page],
      [200, html, page],
    ];
    let requests = 0;
    const other = createServer((_, response) => {
      const [status, headers, body] = plan[requests++] ?? [500, {}];
      response.writeHead(status, headers).end(body);
    });
    await new Promise<void>((resolve) => other.listen(0, "127.0.0.1", resolve));
    atEnd(() => other.close());
    const base = `http://127.0.0.1:${(other.address() as AddressInfo).port}`;
    const { results, seconds } = await scenario("planned", { base, key: "svc_any" });
    const codes = results.map((each: any) => each?.code ?? null);
    expect(codes).toEqual([null, "http_502", "http_503", null, "http_301", "invalid_response", "invalid_response"]);
    expect(seconds).toBeGreaterThanOrEqual(1);
    expect(results[4].text).toContain("https://video.example.com/");
    expect(requests).toBe(plan.length);
  },
);

nightly("it uploads a clip with progress, waits until it plays, and its tokens work", async () => {
  const given = await tenant();
  const files = emptyFolder();
  const file = join(files, "clip.mp4");
  await ffmpeg(...picture("320x180", "25", 2), ...fast, "-pix_fmt", "yuv420p", file);
  const text = join(files, "text.mp4");
  writeFileSync(text, "This is not a video. ".repeat(1000));
  const { asset, last, missing, failed } = await scenario("upload", { ...given, file, text });
  const bytes = readFileSync(file).length;
  expect(asset).toMatchObject({ title: "Clip", playback_status: "ready", source_bytes: bytes, tags: { year: 2026 } });
  expect(last).toEqual([bytes, bytes]);
  expect(missing).toBe("other");
  expect(failed).toEqual({ kind: "failed", code: expect.stringMatching(/^[a-z_]+$/) });

  const { refused, ...signed } = await scenario("tokens", { ...given, asset: asset.id });
  for (const tokens of Object.values(signed) as Record<string, string>[]) {
    const statuses: Record<string, number> = {};
    for (const [name, token] of Object.entries(tokens)) {
      const url = `${given.base}/media/${asset.external_id}/master.m3u8?token=${token}`;
      statuses[name] = (await fetch(url)).status;
    }
    expect(statuses).toEqual({ valid: 200, number: 200, thumbnail: 403, future: 403, other: 403 });
  }
  expect(refused).toEqual([true, true, true]);
});

nightly("an upload resumes after kill -9, and sends at most one part twice", async () => {
  const relay = await startRelay();
  const behind = await startServer(emptyFolder(), { env: { VODBOX_BASE_URL: relay.base } });
  relay.lead(Number(new URL((await lineOf(behind, /^listening on (\S+)$/m))[1] as string).port));
  const { key } = await tenant(behind);
  const files = emptyFolder();
  const file = join(files, "large.mp4");
  const size = 3 * PART_BYTES + 12_345;
  writeFileSync(file, Buffer.alloc(size, "vodbox"));
  const input = { base: relay.base, key, file, state: join(files, "large.upload") };
  for (const stop_at of [1.5 * PART_BYTES, 2.2 * PART_BYTES]) {
    const first = start("interrupted", { ...input, stop_at: Math.round(stop_at) });
    await lineOf(first, /^reached$/);
    first.child.kill("SIGKILL");
    expect((await first.ended).signal).toBe("SIGKILL");
  }
  const beforeLast = relay.sent();
  const { asset, first, ...outcome } = await scenario("resumed", input);
  expect(outcome).toEqual({ status: "uploaded", left: false });
  // Two parts are complete.
  expect(first).toBe(PART_BYTES);
  expect(relay.sent() - beforeLast).toBeLessThan(size - 2 * PART_BYTES + MIB);
  const download = await behind.as(key).getDownload(asset);
  const stored = Buffer.from(await (await fetch(download.body.url)).arrayBuffer());
  expect(stored.equals(readFileSync(file))).toBe(true);
  expect((await behind.as(key).listAssets()).body).toHaveLength(1);
});

nightly("it verifies real deliveries, and refuses forged and old ones", async () => {
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
  const { event, refused, rotated, no_secret } = await scenario("webhook", input);
  expect(event).toMatchObject({ id: delivery?.json.id, event: delivery?.json.event, data: delivery?.json.data });
  expect(rotated).toBe(delivery?.json.id);
  for (const [name, outcome] of Object.entries(refused)) expect([name, outcome]).toEqual([name, { kind: "webhook" }]);
  expect(no_secret).toBe("other");
});

/** The examples of the documentation, in their order. */
const documented = () =>
  [...readDocument("docs/clients-go.md").matchAll(/^```go\n([\s\S]*?)^```$/gm)].map(([, code]) => code as string);

nightly("the other examples of its documentation compile", () => {
  const [, list, receive, token] = documented();
  const imports = ["context", "fmt", "io", "log", "net/http", "os", "time"].map((name) => `"${name}"`).join("\n");
  compiled(
    "examples",
    `package main
import (
${imports}
vodbox "vodbox/client"
)
func lists(ctx context.Context, client *vodbox.Client) {
${list}}
${receive}
func tokens(video *vodbox.Asset) (string, error) {
${token}return token, err
}
func main() {}
`,
  );
});

nightly("the program of its documentation works", async () => {
  const { base, key } = await tenant();
  const files = emptyFolder();
  await ffmpeg(...picture("320x180", "25", 1), ...fast, "-pix_fmt", "yuv420p", join(files, "holiday.mp4"));
  const [code = ""] = documented();
  const built = compiled("documented", code.replaceAll("http://127.0.0.1:8080", base));
  copyFileSync(built, join(files, "documented"));
  const env = { ...process.env, VODBOX_KEY: key };
  const ended = await watched(spawn("./documented", [], { cwd: files, env, stdio: "pipe" })).ended;
  expect(ended).toMatchObject({ code: 0, stdout: expect.stringMatching(/^(\d+ %\n)+http/) });
  expect((await fetch(ended.stdout.trim().split("\n").at(-1) as string)).status).toBe(200);
});
