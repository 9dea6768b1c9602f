import { readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { createClient } from "@libsql/client";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { amount } from "#test/support/amount.ts";
import { startWorker, uploadClip } from "#test/support/crash/encoding.ts";
import { until } from "#test/support/descendants.ts";
import { uploaded } from "#test/support/flow.ts";
import { emptyFolder } from "#test/support/folder.ts";
import { fast, ffmpeg, picture, temporaryFolder } from "#test/support/media/sources.ts";
import { type RunningServer, run, startServer, stopCleanly } from "#test/support/process.ts";
import { receiver } from "#test/support/receiver.ts";
import { type S3Server, s3Server, s3Settings } from "#test/support/s3-server.ts";
import { startSqld } from "#test/support/sqld.ts";

vi.setConfig({ testTimeout: 600_000 });

/** By hand 500, which takes minutes: JOBS=500 vitest run test/remote */
const JOBS = amount(4, 24, "JOBS");
const BUCKET = "two-servers";

const clips = temporaryFolder("two-servers-clips");
const clip = join(clips, "clip.mp4");
let s3: S3Server;
beforeAll(async () => {
  [s3] = await Promise.all([s3Server(), ffmpeg(...picture("160x90", "25", 1), ...fast, clip)]);
  await s3.bucket(BUCKET);
});
afterAll(async () => {
  rmSync(clips, { recursive: true, force: true });
});

/** Two servers that share only a database server, a bucket and their secrets. */
async function platform(prefix: string) {
  const database = await startSqld(emptyFolder());
  const env = {
    VODBOX_DATABASE_URL: database.url,
    VODBOX_SIGNING_SECRET: "signing-secret-of-both",
    ...s3Settings(s3, BUCKET),
    VODBOX_S3_PREFIX: prefix,
    VODBOX_LEASE_SECONDS: "6",
    VODBOX_RATE_LIMIT_UPLOADS: "1000000/60",
    VODBOX_WEBHOOK_ALLOW_CIDRS: "127.0.0.1/32",
  };
  const folders = [emptyFolder(), emptyFolder()] as const;
  // Both first starts concurrently: one migrates, and the other waits for it or finds it done.
  const servers = await Promise.all(folders.map((dataDir) => startServer(dataDir, { env })));
  const [a, b] = servers as [RunningServer, RunningServer];
  const again = (server: RunningServer) =>
    startServer(server.dataDir, { env, args: ["--port", new URL(server.base).port] });
  const client = createClient({ url: database.url });
  const rows = async (sql: string) => (await client.execute(sql)).rows as unknown as Record<string, any>[];
  return { a, b, again, rows, env };
}

test(`two servers, three workers, ${JOBS} jobs, one server killed in the middle: each job once, each event once`, async () => {
  const { a, b, again, rows } = await platform("jobs");
  const { admin } = a;
  const { key } = await uploadClip(a, clip);
  const hook = await receiver();
  expect((await b.as({ admin }).createWebhook({ tenant_id: 1, url: hook.url })).status).toBe(201);
  const bytes = readFileSync(clip);
  for (let made = 1; made < JOBS; made++) await uploaded(made % 2 ? a : b, key, { bytes });
  const workers = [a, b, a].map((server) => startWorker(server, emptyFolder()));
  const completed = async () =>
    (await rows("SELECT count(*) AS jobs FROM transcoding_jobs WHERE status = 'completed'"))[0]?.jobs as number;
  await until("a third is done", async () => (await completed()) >= JOBS / 3, 400_000);
  a.child.kill("SIGKILL");
  await a.ended;
  await until("half is done, by one server", async () => (await completed()) >= JOBS / 2, 400_000);
  const back = await again(a);
  await until("all are done", async () => (await completed()) === JOBS, 500_000);
  for (const worker of workers) worker.child.kill("SIGTERM");
  for (const worker of workers) expect((await worker.ended).code).toBe(0);

  const attempts = await rows("SELECT job_id, outcome FROM transcoding_attempts ORDER BY job_id, id");
  const done = attempts.filter(({ outcome }) => outcome === "completed").map(({ job_id }) => job_id);
  expect(done).toEqual((await rows("SELECT id FROM transcoding_jobs ORDER BY id")).map(({ id }) => id));
  const events = (await rows("SELECT id, event_id, type, data FROM events ORDER BY id")).map(({ data, ...event }) => ({
    ...event,
    data: JSON.parse(data),
  })) as { event_id: string; type: string; data: any }[];
  const of = (type: string) => events.filter((event) => event.type === type);
  for (const type of ["video.asset.ready", "video.upload.completed"])
    expect(
      of(type)
        .map(({ data }) => Number(data.asset_id))
        .toSorted((x, y) => x - y),
    ).toEqual(Array.from({ length: JOBS }, (_, index) => index + 1));
  expect(of("video.job.started").length).toBe(attempts.length);

  // Deliveries of the dead server are sent by another, once its claim of a minute expires.
  const expected = new Set(of("video.asset.ready").map(({ event_id }) => event_id));
  await until(
    "every event is delivered",
    () => {
      const came = new Set(hook.received.map(({ json }) => json.id));
      return [...expected].every((id) => came.has(id));
    },
    120_000,
  );
  for (const server of [back, b]) {
    await stopCleanly(server);
    expect(server.stderr()).not.toMatch(/"level":(50|60)/);
  }
});

test("two servers see each other's changes within a second, and refuse a third with another configuration", async () => {
  const { a, b, again, rows, env } = await platform("seen");
  const { admin } = a;
  const { key, asset } = await uploadClip(a, clip);
  const other = (await a.as({ admin }).createApiKey({ tenant_id: 1, scopes: ["assets:write"] })).body;
  const at = (path = "", by = key) => b.call("GET", `/api/v1/assets/${asset.id}${path}`, { key: by });
  expect([(await at()).status, (await at("", other.token)).status]).toEqual([200, 200]);

  const changed: [string, () => Promise<unknown>, () => Promise<boolean>][] = [
    [
      "a title",
      () => a.as(key).updateAsset(asset.id, { video_asset: { title: "Another" } }),
      async () => (await at()).body.title === "Another",
    ],
    [
      "a playback policy",
      () => a.as(key).updateAsset(asset.id, { video_asset: { playback_policy: "public" } }),
      // It has no media yet: 404 once no token is required.
      async () => (await b.call("GET", `/media/${asset.id}/master.m3u8`)).status === 404,
    ],
    [
      "a revoked key",
      () => a.as({ admin }).revokeApiKey(other.id),
      async () => (await at("", other.token)).status === 401,
    ],
    ["a deleted asset", () => a.as(key).deleteAsset(asset.id), async () => (await at()).status === 404],
    [
      "a suspended tenant",
      () => a.as({ admin }).updateTenant(1, { status: "suspended" }),
      async () => (await b.as(key).listAssets()).status === 401,
    ],
  ];
  for (const [what, change, isSeen] of changed) {
    await change();
    // A second is guaranteed; the rest is a margin for a busy machine.
    await until(what, isSeen, 30_000);
  }
  await a.as({ admin }).updateTenant(1, { status: "active" });

  // One response for one Idempotency-Key, whichever server receives it, also concurrently.
  const body = { tenant_id: 1, collection: { name: "C", slug: "c" } };
  const headers = { "idempotency-key": "once" };
  const made = await Promise.all(
    Array.from({ length: 8 }, (_, n) => (n % 2 ? a : b).as({ admin, headers }).createCollection(body)),
  );
  expect(
    new Set(made.map(({ status, body }) => `${status} ${body.id}`)).size,
    JSON.stringify(made.map(({ text }) => text)),
  ).toBe(1);
  expect(await rows("SELECT id FROM collections")).toHaveLength(1);

  const refused = async (change: Record<string, string>) => {
    const started = run(["serve", "--data", emptyFolder(), "--port", "0", "--workers", "0"], {
      env: { ...env, ...change },
    });
    const { code, stderr } = await started;
    return `${code} ${stderr}`;
  };
  expect(await refused({ VODBOX_SIGNING_SECRET: "another-signing-secret" })).toMatch(/^1 .*VODBOX_SIGNING_SECRET/);
  expect(await refused({ VODBOX_S3_PREFIX: "elsewhere" })).toMatch(/^1 .*another object storage/);
  expect(await refused({ VODBOX_STORAGE: "local" })).toMatch(/^1 .*use S3/);
  const moved = await a.as({ admin }).startMigration({ to: "local" });
  expect([moved.status, moved.error.code]).toEqual([409, "migration_conflict"]);

  // A server that announced its stop is removed immediately.
  for (const server of [a, b]) server.child.kill("SIGTERM");
  for (const server of [a, b]) expect((await server.ended).code).toBe(0);
  expect(await rows("SELECT * FROM servers")).toEqual([]);
  const back = await again(a);
  expect((await back.as({ admin }).listTenants()).body).toHaveLength(1);
});
