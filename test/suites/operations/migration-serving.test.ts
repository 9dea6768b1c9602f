import { createHash, randomBytes } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { beforeAll, expect, test } from "vitest";
import { amount } from "#test/support/amount.ts";
import type { Answer } from "#test/support/client.ts";
import { readyAsset, uploaded } from "#test/support/flow.ts";
import { emptyFolder } from "#test/support/folder.ts";
import { nightly } from "#test/support/nightly.ts";
import { type RunningServer, run, startServer } from "#test/support/process.ts";
import { CORS_RULES, type S3Server, s3Server } from "#test/support/s3-server.ts";
import { seeded } from "#test/support/seed.ts";
import { asEnvironment, BUCKET, fill, inOrder, localAt, PATH, s3At, s3Settings, sourceSum, sumsOf } from "./setup.ts";

let s3: S3Server;
beforeAll(async () => {
  s3 = await s3Server();
  await s3.bucket(BUCKET);
  await s3.cors(BUCKET, CORS_RULES);
});

const sum = (bytes: Uint8Array) => createHash("sha256").update(bytes).digest("hex");

async function scene(prefix: string) {
  const dataDir = emptyFolder();
  const env = { ...asEnvironment(s3Settings(s3, prefix)), VODBOX_RATE_LIMIT_UPLOADS: "100000/1" };
  const start = (storage = "local") => startServer(dataDir, { env: { ...env, VODBOX_STORAGE: storage } });
  const server = await start();
  const { admin } = server;
  const tenant = await server.as({ admin }).createTenant({ name: "T", slug: "t" });
  const scopes = ["assets:read", "assets:write", "playback:read"];
  const issued = await server.as({ admin }).createApiKey({ tenant_id: tenant.body.id, scopes });
  const command = async (...args: string[]) => {
    const ended = await run(["admin", "storage", ...args, "--data", dataDir, "--json"], {
      env: { ...env, VODBOX_ADMIN_TOKEN: admin, VODBOX_LOG_LEVEL: "error" },
    });
    if (ended.code !== 0) throw new Error(ended.stderr);
    return JSON.parse(ended.stdout);
  };
  return { dataDir, start, server, key: issued.body.token as string, command, env };
}

const stop = async (server: RunningServer, signal: NodeJS.Signals) => {
  server.child.kill(signal);
  await server.ended;
};

/** A small source that is uploaded, and its checksum. */
async function upload(server: RunningServer, key: string) {
  const bytes = randomBytes(10_000);
  const { asset } = await uploaded(server, key, { bytes });
  return { id: asset.id as number, sum: sum(bytes) };
}

async function plays(server: RunningServer, key: string, assetId: number): Promise<Answer> {
  const told = await server.as(key).getPlayback(assetId);
  if (told.status !== 200) throw new Error(told.text);
  return server.call("GET", told.body.hls_url);
}

/** How often it is killed in each direction. */
const ROUNDS = amount(2, 9);

nightly(
  "to S3 and back while a client uploads and deletes: nothing is lost, nothing reappears",
  async () => {
    const { dataDir, start, server: first, key, command } = await scene("there-and-back");
    let server = first;
    const { admin } = server;
    const extra = await fill(localAt(dataDir), 150);
    const ready = await readyAsset(server, key, { playback_policy: "public" });
    const doomed = await upload(server, key);

    // It began before: its URL belongs to the source store, where it ends.
    const early = randomBytes(50_000);
    const body = { filename: "early.mp4", bytes_expected: early.length };
    const pending = (await server.as(key).initiateUpload(body)).body;

    expect(await command("migrate", "--to", "s3", "--dry-run")).toMatchObject({
      objects: expect.any(Number),
      objects_there: 0,
    });
    let isOver = false;
    const kept: { id: number; sum: string }[] = [];
    const client = (async () => {
      while (!isOver) {
        kept.push(await upload(server, key));
        const gone = await upload(server, key);
        expect((await server.as(key).deleteAsset(gone.id)).status).toBe(204);
      }
    })();
    expect((await server.as(key).deleteAsset(doomed.id)).status).toBe(204);
    const waiting = await command("migrate", "--to", "s3");
    isOver = true;
    await client;
    expect(waiting).toMatchObject({ active: "s3", phase: "draining", fixed: 0 });
    // The upload that began before, and possibly one in progress.
    expect(waiting.waiting_for.uploads).toBeGreaterThanOrEqual(1);
    expect(waiting.verified).toBeGreaterThan(150);
    // Both stores are in use: migrating back is refused until the end.
    const back = await server.call("POST", PATH, { admin, body: { to: "local" } });
    expect([back.status, back.body.code]).toEqual([409, "migration_conflict"]);
    expect((await plays(server, key, ready.asset.id)).status).toBe(200);

    const put = await server.call("PUT", pending.upload_url, { raw: early, headers: pending.upload_headers });
    expect(put.status).toBe(200);
    const done = { bytes_received: early.length };
    expect((await server.as(key).completeUpload(pending.id, done)).status).toBe(200);
    kept.push({ id: pending.asset_id, sum: sum(early) });
    expect(await command("migrate", "--to", "s3")).toMatchObject({ phase: "settled", old_copies: "local" });

    const remote = s3At(s3, "there-and-back");
    expect(inOrder(await sumsOf(remote, "tenants/1/extra/"))).toEqual(inOrder(extra));
    for (const one of kept) expect(await sourceSum(server.call, key, one.id)).toBe(one.sum);
    expect(await sourceSum(server.call, key, doomed.id)).toBeNull();
    expect((await plays(server, key, ready.asset.id)).status).toBe(200);
    const late = await upload(server, key);
    const sources = await sumsOf(remote, "tenants/1/sources/");
    expect([...sources.values()]).toContain(late.sum);
    expect(sources.size).toBe(kept.length + 2);

    // With the old setting it does not serve from the old store.
    await stop(server, "SIGTERM");
    server = await start("local");
    expect(await sourceSum(server.call, key, late.id)).toBe(late.sum);
    const looked = await server.as({ admin }).runQuickChecks();
    expect(looked.body.findings).toContainEqual({
      check: "settings",
      ok: false,
      fixed: 0,
      detail: expect.stringContaining("VODBOX_STORAGE=s3"),
    });

    const again = await command("migrate", "--to", "local");
    expect(again).toMatchObject({ active: "local", phase: "settled", old_copies: "s3" });
    // Objects that were there already were compared and not copied again.
    expect(again.copied.objects).toBeLessThan(100);
    expect(inOrder(await sumsOf(localAt(dataDir), "tenants/1/extra/"))).toEqual(inOrder(extra));
    expect(await sourceSum(server.call, key, late.id)).toBe(late.sum);
    expect(await command("clean")).toMatchObject({ old_copies: null });
    expect((await remote.list("tenants/")).objects).toEqual([]);
    await stop(server, "SIGTERM");
    // Without a server the command runs the migration itself.
    expect(await command("migrate", "--to", "s3", "--quick", "--remove-old")).toMatchObject({
      active: "s3",
      phase: "settled",
      old_copies: null,
      verified: 0,
    });
    expect((await localAt(dataDir).list("tenants/")).objects).toEqual([]);
    server = await start("s3");
    for (const one of [...kept, late]) expect(await sourceSum(server.call, key, one.id)).toBe(one.sum);
    expect(inOrder(await sumsOf(remote, "tenants/1/extra/"))).toEqual(inOrder(extra));
  },
  600_000,
);

test("killed repeatedly, it resumes, and nothing is missing", async () => {
  const { dataDir, start, server: first, key } = await scene("killed");
  let server = first;
  const { admin } = server;
  const ready = await readyAsset(server, key, { playback_policy: "public" });
  const extra = await fill(localAt(dataDir), 200);
  const kept: { id: number; sum: string }[] = [];
  const phases = new Set<string>();
  const random = seeded();
  for (const to of ["s3", "local"]) {
    for (let round = 0; ; round++) {
      // It would continue by itself shortly after.
      expect((await server.call("POST", PATH, { admin, body: { to } })).status).toBe(202);
      kept.push(await upload(server, key));
      await sleep(random.whole(0, 1500));
      const { body } = await server.call("GET", PATH, { admin });
      phases.add(body.phase);
      await stop(server, "SIGKILL");
      server = await start("local");
      if (body.phase === "settled" || round === ROUNDS - 1) break;
    }
    await expect
      .poll(async () => (await server.call("GET", PATH, { admin })).body, { timeout: 200_000, interval: 300 })
      .toMatchObject({ phase: "settled", active: to, error: null });
    for (const one of kept) expect(await sourceSum(server.call, key, one.id)).toBe(one.sum);
    expect((await plays(server, key, ready.asset.id)).status).toBe(200);
    const store = to === "s3" ? s3At(s3, "killed") : localAt(dataDir);
    expect(inOrder(await sumsOf(store, "tenants/1/extra/"))).toEqual(inOrder(extra));
    expect((await sumsOf(store, "tenants/1/sources/")).size).toBe(kept.length + 1);
  }
  expect(phases.size).toBeGreaterThan(1);
}, 600_000);
