import { once } from "node:events";
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import type { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { until } from "#test/support/descendants.ts";
import { atEnd, emptyFolder, newFolder } from "#test/support/folder.ts";
import { agentOf, callTool, type Result } from "#test/support/mcp/client.ts";
import { foundBy } from "#test/support/mcp/find.ts";
import { CAPTIONS, type Given, TASKS } from "#test/support/mcp/tasks.ts";
import { fast, ffmpeg, picture, sound } from "#test/support/media/sources.ts";
import { type RunningServer, startServer } from "#test/support/process.ts";
import { receiver, status } from "#test/support/receiver.ts";
import { KEY as SPEECH_KEY, transcriptionService } from "#test/support/transcription-service.ts";
import { KEY, translationService } from "#test/support/translation-services.ts";

/**
 * Tasks in plain words, done by a scripted agent with the tools of a real server, which encodes, transcribes and delivers. Each
 * task also needs tools that its own words find: their descriptions are what a model chooses by.
 */

/** A tool must be among the first so many that are found by the words of its task. */
const FIRST = 5;
/** The largest result of a task in bytes, of those that it needs not to find a tool. */
const MAX_RESULT_BYTES = 12_000;
const SCOPES = [
  ...["assets:read", "assets:write", "playback:read", "billing:write"],
  ...["api_keys:read", "api_keys:write", "webhooks:read", "webhooks:write"],
];

let server: RunningServer;
let key: string;
let client: Client;
let tools: Awaited<ReturnType<Client["listTools"]>>["tools"];
let given: Given;
/** What the agent received while the longest video was encoded. */
const progress: number[] = [];
const get = (path: string) => server.call("GET", path, { key });

/** A web server with short films on a loopback address that the server may fetch from. */
async function website(): Promise<string> {
  const folder = emptyFolder();
  const files: Record<string, string[]> = {
    "harbour.mp4": [...picture("160x90", "10", 150), ...sound(150)],
    "sunset.mp4": [...picture("160x90", "10", 3), ...sound(3)],
    "beach.mp4": picture("160x90", "10", 4),
    "test.mp4": picture("160x90", "10", 4),
  };
  for (const [name, source] of Object.entries(files))
    await ffmpeg(...source, ...fast, "-g", "20", "-pix_fmt", "yuv420p", "-shortest", join(folder, name));
  const site = createServer(({ url = "" }, response) => {
    const name = url.slice(1);
    response.end(name in files ? readFileSync(join(folder, name)) : "not a video");
  }).listen(0, "127.0.0.2");
  await once(site, "listening");
  atEnd(async () => {
    site.closeAllConnections();
    site.close();
  });
  return `http://127.0.0.2:${(site.address() as AddressInfo).port}`;
}

async function post(path: string, body: unknown, headers = {}): Promise<any> {
  const made = await server.call("POST", path, { key, body, headers });
  expect(made.status, `${path} ${made.text}`).toBeLessThan(300);
  return made.body;
}

async function watched(asset: number, country: string, viewer: string): Promise<void> {
  const session = { asset_id: asset, viewer_id: viewer, session_id: `session-of-${viewer}` };
  const events = [
    { ...session, event: "play" },
    { ...session, event: "heartbeat", watched_seconds: 2 },
  ];
  await post("/api/v1/playback_events", { events }, { "CF-IPCountry": country });
}

beforeAll(async () => {
  const [speech, translation, hook] = [
    await transcriptionService(),
    await translationService("libretranslate"),
    await receiver(status(500)),
  ];
  server = await startServer(newFolder(), {
    args: ["--workers", "1"],
    env: {
      VODBOX_WEBHOOK_ALLOW_CIDRS: "127.0.0.0/8",
      VODBOX_WEBHOOK_RETRY_SECONDS: "1,1,1,1,1",
      VODBOX_COUNTRY_HEADER: "CF-IPCountry",
      VODBOX_TRUSTED_PROXIES: "127.0.0.0/8",
      VODBOX_TRANSCRIBE: "openai",
      VODBOX_TRANSCRIBE_URL: speech.url,
      VODBOX_TRANSCRIBE_KEY: SPEECH_KEY,
      VODBOX_TRANSLATE: "libretranslate",
      VODBOX_TRANSLATE_URL: translation.url,
      VODBOX_TRANSLATE_KEY: KEY,
    },
  });
  const { admin, as } = server;
  const tenant = await as({ admin }).createTenant({ name: "Acme", slug: "acme", plan_name: "pro" });
  const keyNamed = async (name: string) =>
    (await as({ admin }).createApiKey({ tenant_id: tenant.body.id, name, scopes: SCOPES })).body.token;
  await keyNamed("CI");
  key = await keyNamed("Agent");
  client = await agentOf(server, key);
  ({ tools } = await client.listTools());

  const site = await website();
  await post("/api/v1/webhooks", { url: hook.url, event_types: ["video.asset.ready"] });
  const upload = async (title: string, file: string, more = {}) =>
    (await post("/api/v1/uploads/from_url", { url: `${site}/${file}`, title, ...more })).asset_id;
  const harbour = await upload("Harbour tour", "harbour.mp4", { playback_policy: "public" });
  const beach = [await upload("Beach 1", "beach.mp4"), await upload("Beach 2", "beach.mp4")];
  const [interview, other] = [await upload("Interview", "interview.mp4"), await upload("Test upload", "test.mp4")];
  for (const id of [harbour, ...beach, interview, other]) {
    const { json } = await callTool(client, "wait_until_ready", { asset_id: id, seconds: 300 }, (value) => {
      if (id === harbour) progress.push(value);
    });
    expect(json.playback_status, json.title).toBe(id === interview ? "errored" : "ready");
  }
  await callTool(client, "create_subtitle", {
    video_asset_id: harbour,
    language: "en",
    label: "English",
    file: CAPTIONS,
  });
  for (const [viewer, country] of ["AT", "AT", "DE"].entries()) await watched(harbour, country, `guest-${viewer + 6}`);
  await until(
    "the plays are counted",
    async () => (await get(`/api/v1/assets/${harbour}/analytics`)).body.play_count === 3,
  );
  const [endpoint] = (await get("/api/v1/webhooks")).body;
  const failed = () => get(`/api/v1/webhooks/${endpoint.id}/deliveries?status=failed`);
  await until("a delivery has failed", async () => (await failed()).body.length > 0);
  hook.behave(() => {});

  const day = 86_400_000;
  const at = (days: number) => new Date(Date.now() + days * day).toISOString();
  given = {
    site,
    hook: hook.url,
    today: at(0),
    weekAgo: at(-7),
    friday: at(3),
    harbour,
    interview,
    beach,
    tags: { season: "summer" },
  };
});
afterAll(() => void server?.child.kill("SIGKILL"));

/** The value of `$0.items.*.id`: of the first result; `$harbour`: of what is given. Throws for one that is missing. */
function named(text: string, results: readonly Result[]): unknown {
  const [root = "", ...path] = text.slice(1).split(".");
  let value: any = /^\d+$/.test(root) ? results[Number(root)]?.json : given[root as keyof Given];
  for (const [index, name] of path.entries()) {
    if (name === "*") return value.map((each: any) => path.slice(index + 1).reduce((of: any, part) => of[part], each));
    value = value?.[name];
  }
  if (value === undefined) throw new Error(`${text} is missing in ${results[Number(root)]?.text}`);
  return value;
}

function filled(value: unknown, results: readonly Result[]): any {
  if (typeof value === "string" && /^\$[\w.*]+$/.test(value)) return named(value, results);
  if (typeof value === "string") return value.replace(/\$(\w+)/g, (all) => String(named(all, results)));
  if (Array.isArray(value)) return value.map((each) => filled(each, results));
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, each]) => [name, filled(each, results)]));
}

/** As an agent does: a tool that is not offered is found by `list_operations`, and called by its name. */
async function call(name: string, args: Record<string, unknown>): Promise<Result> {
  if (tools.some((tool) => tool.name === name)) return callTool(client, name, args, () => {});
  const { json } = await callTool(client, "list_operations", { topic: name.replaceAll("_", " ") });
  const found: string[] = json.map((one: { name: string }) => one.name);
  expect(found, name).toContain(name);
  return callTool(client, "call_operation", { name, arguments: args });
}

test("an agent that waits receives growing progress", () => {
  expect(progress.length).toBeGreaterThan(1);
  expect(progress).toEqual([...new Set(progress)].toSorted((a, b) => a - b));
  expect(progress.at(-1)).toBeLessThanOrEqual(100);
});

test("the documentation has these tasks", () => {
  expect(TASKS).toHaveLength(30);
  const rows = TASKS.map(({ say, calls }) => `| ${say} | ${calls.map(([name]) => `\`${name}\``).join(", ")} |`);
  const table = ["| Task | Calls |", "|---|---|", ...rows].join("\n");
  expect(readFileSync(new URL("../../../docs/agents.md", import.meta.url), "utf8")).toContain(table);
});

test.each(TASKS)("$say", async ({ calls, outcome }) => {
  const results: Result[] = [];
  for (const [name, args] of calls) {
    const result = await call(name, filled(args, results));
    expect(result.isError, `${name}: ${result.text}`).toBe(false);
    expect(Buffer.byteLength(result.text), name).toBeLessThan(MAX_RESULT_BYTES);
    results.push(result);
  }
  await outcome({ results, given, get });
});

describe("the words of each task find", () => {
  /** The tools that do the task: those that change something, and the last one that reads. */
  const needed = TASKS.map(({ say, calls }) => {
    const names = calls.map(([name]) => name).filter((name) => name !== "wait_until_ready");
    const changes = names.filter((name) => !/^(get|list|search)_/.test(name));
    return { say, names: changes.length > 0 ? changes : names.slice(-1) };
  });

  test.each(needed)("$say: $names", async ({ say, names }) => {
    const offered = foundBy(tools, say);
    for (const name of names) {
      const isOffered = tools.some((tool) => tool.name === name);
      const { json } = isOffered ? { json: [] } : await callTool(client, "list_operations", { topic: say });
      const found: string[] = isOffered ? offered : json.map((one: { name: string }) => one.name);
      expect(found.slice(0, FIRST), `${name} of ${found.join(" ")}`).toContain(name);
    }
  });
});
