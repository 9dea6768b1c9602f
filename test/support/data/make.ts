import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import Sqlite from "libsql";
import { type Call, client } from "../client.ts";
import { readyAsset, uploaded } from "../flow.ts";
import { subtitled } from "../subtitles.ts";

/**
 * Writes the data directory of a released version, with rows of every kind, for the tests of upgrades:
 *   node test/support/data/make.ts VERSION COMMAND…
 * COMMAND starts vodbox of that version, such as `dist/vodbox` or `node cli/main.ts` in a checkout of its tag. Run it for
 * each release. The result is VERSION.tar.gz in this directory: the data, and expected.json, what its API answered.
 */
const ADMIN = "admin-token-of-the-fixture-data";
const WORKER = "worker-token-of-the-fixture-data";
const DRAFTS = 250;
const VIEWERS = 40;

export type Expected = {
  keys: string[];
  /** Answers with the first key, by path. */
  answers: Record<string, unknown>;
  /** The path of a media file, and its text. */
  media: { path: string; text: string };
};

async function main([version, command, ...args]: string[]): Promise<void> {
  if (!version || !command) throw new Error("usage: node test/support/data/make.ts VERSION COMMAND…");
  const folder = mkdtempSync(join(tmpdir(), "vodbox-fixture-"));
  try {
    const data = join(folder, "data");
    const env = {
      ...process.env,
      VODBOX_ADMIN_TOKEN: ADMIN,
      VODBOX_WORKER_TOKEN: WORKER,
      VODBOX_LOG_LEVEL: "warn",
      VODBOX_WEBHOOK_ALLOW_CIDRS: "127.0.0.0/8",
      VODBOX_RATE_LIMIT_UPLOADS: "100000/60",
    };
    const serve = [...args, "serve", "--data", data, "--port", "0", "--workers", "0"];
    const server = spawn(command, serve, { env, stdio: ["ignore", "pipe", "inherit"] });
    for await (const line of createInterface(server.stdout)) {
      const base = /^vodbox ready on (\S+)$/.exec(line)?.[1];
      if (!base) continue;
      const expected = await fill(client(base));
      writeFileSync(join(data, "expected.json"), `${JSON.stringify(expected, null, 2)}\n`);
      break;
    }
    const ended = once(server, "exit");
    server.kill("SIGTERM");
    await ended;
    const database = new Sqlite(join(data, "vodbox.db"));
    database.exec("VACUUM");
    database.close();
    const result = join(import.meta.dirname, `${version}.tar.gz`);
    const left = ["--exclude=server.*", "--exclude=scratch", "--exclude=*-wal", "--exclude=*-shm"];
    execFileSync("tar", ["-czf", result, ...left, "-C", folder, "--owner=0", "--group=0", "data"]);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

async function fill(call: Call): Promise<Expected> {
  const app = { call, worker: WORKER };
  const post = async (path: string, body: unknown, credentials: object = { admin: ADMIN }) => {
    const answer = await call("POST", path, { ...credentials, body });
    if (answer.status >= 300) throw new Error(`POST ${path}: ${answer.text}`);
    return answer.body;
  };
  const keys: string[] = [];
  const tenants: number[] = [];
  for (const slug of ["acme", "other"]) {
    const { id } = await post("/api/v1/admin/tenants", { name: slug, slug });
    const scopes = [
      "assets:read",
      "assets:write",
      "playback:read",
      "api_keys:write",
      "webhooks:read",
      "webhooks:write",
    ];
    keys.push((await post("/api/v1/api_keys", { tenant_id: id, scopes })).token);
    tenants.push(id);
  }
  const [key, otherKey] = keys as [string, string];
  await post("/api/v1/webhooks", { tenant_id: tenants[0], url: "http://127.0.0.1:9/hook", event_types: [] });
  await post("/api/v1/signing_keys", { algorithm: "EdDSA" }, { key });
  await post("/api/v1/live/channels", { tenant_id: tenants[0], channel: "studio" });
  const collection = await post("/api/v1/collections", { collection: { name: "Films", slug: "films" } }, { key });
  const ready = await readyAsset(app, key, { title: "Ready", playback_policy: "public" });
  await subtitled(app, key, ready.asset.id);
  await uploaded(app, key, { title: "Queued" });
  await uploaded(app, otherKey, { title: "Another tenant's" });
  for (let i = 0; i < DRAFTS; i++) {
    const tags = { number: String(i), even: String(i % 2 === 0) };
    const fields = { title: `Draft ${i}`, description: `Part ${i} of a séries ✓`, tags, collection_id: collection.id };
    await post("/api/v1/uploads/initiate", { filename: `${i}.mp4`, bytes_expected: 1000, ...fields }, { key });
  }
  for (let i = 0; i < VIEWERS; i++) {
    const occurred_at = new Date().toISOString();
    const event = { asset_id: ready.asset.id, session_id: `session-${i}`, viewer_id: `viewer-${i % 7}`, occurred_at };
    const events = ["play", "ended"].map((name) => ({
      ...event,
      event: name,
      position_seconds: 4,
      watched_seconds: 4,
    }));
    await post("/api/v1/playback_events", { events }, {});
  }
  return { keys, ...(await read(call, key, ready.asset.id, ready.asset.external_id)) };
}

async function read(call: Call, key: string, ready: number, external: string): Promise<Omit<Expected, "keys">> {
  const answers: Expected["answers"] = {};
  const paths = [
    ...["assets?limit=100", "assets?query=séries&limit=5", "collections", "signing_keys", `assets/${ready}/subtitles`],
    ...[`assets/${ready}`, "webhooks", "uploads"],
  ];
  for (const path of paths) {
    const answer = await call("GET", `/api/v1/${path}`, { key });
    if (answer.status === 200) answers[`/api/v1/${path}`] = answer.body;
  }
  const media = `/media/${external}/master.m3u8`;
  return { answers, media: { path: media, text: (await call("GET", media)).text } };
}

await main(process.argv.slice(2));
