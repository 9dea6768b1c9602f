import { existsSync, readFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import Sqlite from "libsql";
import { expect, test } from "vitest";
import { amount } from "#test/support/amount.ts";
import { descendantsOf, isAlive, type ProcessId, until, untilGone } from "#test/support/descendants.ts";
import { readyAsset, uploaded } from "#test/support/flow.ts";
import { emptyFolder } from "#test/support/folder.ts";
import { freshly } from "#test/support/fresh.ts";
import { fast, ffmpeg, picture } from "#test/support/media/sources.ts";
import { type RunningServer, run, startServer, stopCleanly } from "#test/support/process.ts";
import { typedClient } from "#test/support/typed-client.ts";

const PROCESSES = 3;
const env = { VODBOX_RATE_LIMIT_UPLOADS: "1000000/60", VODBOX_RATE_LIMIT_SYNC: "1000000/60" };
const start = (dataDir: string, args: string[] = [], more = {}) =>
  startServer(dataDir, { env: { ...env, ...more }, args: ["--processes", String(PROCESSES), ...args] });

/** The serving processes, without the supervisor. */
const serving = (server: RunningServer) =>
  descendantsOf(server.child.pid as number).filter(({ command }) => / serve /.test(command));

async function tenantOf(server: RunningServer) {
  const call = freshly(server.base);
  const { admin } = server;
  const tenant = await typedClient(call)({ admin }).createTenant({ name: "T", slug: "t" });
  const scopes = ["assets:read", "assets:write"];
  const issue = () => typedClient(call)({ admin }).createApiKey({ tenant_id: tenant.body.id, scopes });
  const issued = await issue();
  return { as: typedClient(call), call, admin, issue, key: issued.body.token };
}

/** Requests that each process has answered so far. */
async function answered(call: ReturnType<typeof freshly>, admin: string): Promise<Record<string, number>> {
  const { text } = await call("GET", "/metrics", { bearer: admin });
  const found: Record<string, number> = {};
  for (const [, slot = "", count] of text.matchAll(
    /^vodbox_http_request_duration_seconds_count\{process="(\d+)".*\} (\d+)$/gm,
  ))
    found[slot] = (found[slot] ?? 0) + Number(count);
  return found;
}

test("an asset that was unpublished through one of them is refused by all, with its segments in their memory", async () => {
  const server = await start(emptyFolder());
  const { as, call, admin, key } = await tenantOf(server);
  const { asset, contract } = await readyAsset({ call, worker: server.worker }, key, { playback_policy: "public" });
  const segment = `/media/${asset.id}/${contract.outputs.prefix.split("/").at(-2)}/low/1.m4s`;
  // Enough requests on new connections for every process to answer some.
  const statuses = async () =>
    new Set((await Promise.all(Array.from({ length: 24 }, () => call("GET", segment)))).map(({ status }) => status));
  const publish = async (playback_policy: string) =>
    (await as(key).updateAsset(asset.id, { video_asset: { playback_policy } })).status;
  for (let round = 0; round < amount(4, 10); round++) {
    expect([...(await statuses()), await publish("signed"), ...(await statuses())]).toEqual([200, 200, 403]);
    expect(await publish("public")).toBe(200);
  }
  expect(Object.keys(await answered(call, admin))).toHaveLength(PROCESSES);
});

test("all of them answer, each immediately with changes of another one", async () => {
  const server = await start(emptyFolder());
  const { as, call, admin, key, issue } = await tenantOf(server);
  expect(serving(server)).toHaveLength(PROCESSES);
  const { asset } = await uploaded({ call }, key);
  const many = <T>(work: () => Promise<T>) => Promise.all(Array.from({ length: 8 }, work));
  for (let round = 0; round < amount(8, 25); round++) {
    const { body: other } = await issue();
    const title = `Round ${round}`;
    // Read by all of them, so that each has it cached.
    await many(() => as(other.token).getAsset(asset.id));
    expect((await as(other.token).updateAsset(asset.id, { video_asset: { title } })).status).toBe(200);
    for (const { body } of await many(() => as(key).getAsset(asset.id))) expect(body.title).toBe(title);
    for (const { body } of await many(() => as(key).listAssets({ limit: 20 }))) expect(body[0].title).toBe(title);
    expect((await as({ admin }).revokeApiKey(other.id)).status).toBe(204);
    for (const { status } of await many(() => as(other.token).getAsset(asset.id))) expect(status).toBe(401);
  }
  const counts = await answered(call, admin);
  expect(Object.keys(counts).toSorted()).toEqual(["0", "1", "2"]);
  for (const [slot, count] of Object.entries(counts)) expect(count, `process ${slot}`).toBeGreaterThan(20);

  const rotated = await as({ admin }).rotateToken("worker");
  // It is in this server's environment.
  expect([rotated.status, rotated.error.code]).toEqual([409, "token_set_elsewhere"]);
  const live = (await as({ admin }).rotateToken("live")).body.token;
  const ask = () =>
    as({ headers: { "x-svc-live-token": live } }).unchecked.authorizeLive({
      action: "publish",
      path: "live/none",
      protocol: "rtmp",
    });
  await until("all of them know the new token", async () => (await many(ask)).every(({ status }) => status === 403));

  // Progress is usually requested from another process than the one that runs it.
  expect((await as({ admin }).startCheckup({})).status).toBe(202);
  const seen = await until("the check-up is over, and all know it", async () => {
    const all = await many(() => as({ admin }).getCheckup());
    expect(new Set(all.map(({ status }) => status))).toEqual(new Set([200]));
    return all.every(({ body }) => body.status === "done") ? all[0]?.body : null;
  });
  expect(seen.findings).toContainEqual(expect.objectContaining({ check: "missing", ok: true }));

  const move = await as({ admin }).startMigration({ to: "s3" });
  expect([move.status, move.error.error]).toEqual([409, expect.stringContaining("--processes 1")]);

  await stopCleanly(server);
  expect(server.stderr()).not.toMatch(/"level":"(error|fatal)"/);
});

test("one is killed repeatedly while all write: nothing acknowledged is lost, and it is restarted", async () => {
  const dataDir = emptyFolder();
  const server = await start(dataDir);
  const { as, key } = await tenantOf(server);
  const acknowledged = new Map<number, string>();
  let isOver = false;
  let cut = 0;
  const writer = async (name: string) => {
    for (let n = 0; !isOver; n++) {
      const title = `${name}-${n}`;
      const body = { filename: `${title}.mp4`, bytes_expected: 10, title };
      const made = await as(key)
        .initiateUpload(body)
        .catch((error) => {
          if (!(error instanceof TypeError)) throw error;
          cut++;
        });
      if (!made) continue;
      expect(made.status, made.text).toBe(201);
      acknowledged.set(made.body.asset_id, title);
    }
  };
  const load = Promise.all(["a", "b", "c", "d", "e", "f"].map(writer));
  for (let kill = 0; kill < amount(2, 8); kill++) {
    const before = acknowledged.size;
    await until("they write", () => acknowledged.size > before + 60);
    const all = serving(server);
    const victim = all[kill % all.length] as (typeof all)[number];
    process.kill(victim.pid, "SIGKILL");
    await untilGone([victim]);
    await until("it is back", () => serving(server).length === PROCESSES);
  }
  isOver = true;
  await load;
  expect(cut).toBeGreaterThan(0);
  expect(server.child.exitCode).toBe(null);
  for (const [id, title] of acknowledged)
    expect((await as(key).getAsset(id)).body, `asset ${id}`).toMatchObject({ id, title });
  await stopCleanly(server);
  const doctor = await run(["admin", "doctor", "--data", dataDir, "--json"]);
  expect([doctor.code, JSON.parse(doctor.stdout).ok], doctor.stdout).toEqual([0, true]);
  console.log(`${acknowledged.size} answers, ${cut} requests died with a process`);
});

test("an unresponsive one blocks the others only briefly: it is killed and replaced", async () => {
  const server = await start(emptyFolder());
  const { as, key } = await tenantOf(server);
  const [stopped] = serving(server);
  // Usually during a write: then the others wait until its lock is released.
  const body = { filename: "a.mp4", bytes_expected: 10 };
  const write = () =>
    as(key)
      .initiateUpload(body)
      .catch(() => null);
  const first = Array.from({ length: 60 }, write);
  process.kill(stopped?.pid as number, "SIGSTOP");
  await until("it is replaced", () => serving(server).length === PROCESSES && !isAlive(stopped as ProcessId), 40_000);
  const answers = await Promise.all(first);
  expect(answers.filter((answer) => answer?.status === 201).length).toBeGreaterThan(10);
  await until("all of them write", async () => (await Promise.all([write(), write(), write()])).every(Boolean));
  expect(server.stderr()).toContain("is unresponsive");
});

test("all end with the supervisor, and a start recovers immediately; SIGTERM stops all gracefully", async () => {
  const dataDir = emptyFolder();
  const first = await start(dataDir, ["--workers", "1"]);
  const { key } = await tenantOf(first);
  const below = descendantsOf(first.child.pid as number);
  expect(below.filter(({ command }) => / worker /.test(command))).toHaveLength(1);
  first.child.kill("SIGKILL");
  await first.ended;
  // The announcements of killed processes block nothing, although tokens are derived again.
  const second = await start(dataDir, ["--workers", "1"], { VODBOX_SIGNING_SECRET: "another-secret-than-before" });
  expect((await freshly(second.base)("GET", "/api/v1/assets", { key })).status).toBe(200);
  await untilGone(below);

  const clip = join(emptyFolder(), "clip.mp4");
  await ffmpeg(...picture("160x90", "25", 1), ...fast, clip);
  const call = freshly(second.base);
  const { asset } = await uploaded({ call }, key, { bytes: readFileSync(clip) });
  await until(
    "a worker of theirs has encoded it",
    async () => (await typedClient(call)(key).getAsset(asset.id)).body.playback_status === "ready",
    60_000,
  );
  const listed = await run(["admin", "tenant", "list", "--data", dataDir, "--json"], {
    env: { VODBOX_ADMIN_TOKEN: second.admin },
  });
  expect(JSON.parse(listed.stdout)).toMatchObject([{ slug: "t" }]);
  const all = descendantsOf(second.child.pid as number);
  await stopCleanly(second);
  expect(all.filter(isAlive)).toEqual([]);
  expect(existsSync(join(dataDir, "server.json"))).toBe(false);
});

test("a failed start is reported once: an occupied port, a data directory in use, settings", async () => {
  const taken = createServer();
  await new Promise<void>((resolve) => taken.listen(0, "127.0.0.1", resolve));
  const { port } = taken.address() as AddressInfo;
  const several = ["serve", "--processes", "2", "--workers", "0"];
  try {
    const busy = await run([...several, "--data", emptyFolder(), "--port", String(port)]);
    expect([busy.code, busy.stderr]).toEqual([1, expect.stringMatching(/^vodbox: Port \d+ .* is in use;[^\n]*\n$/)]);
  } finally {
    taken.close();
  }
  const server = await start(emptyFolder());
  const second = await run([...several, "--data", server.dataDir, "--port", "0"]);
  expect([second.code, second.stderr]).toEqual([1, expect.stringMatching(/^vodbox: The data directory .* is in use/)]);
  const wrong = await run([...several, "--data", emptyFolder(), "--port", "0"], { env: { VODBOX_STORAGE: "s3" } });
  expect([wrong.code, wrong.stderr.split("\n").filter(Boolean)]).toEqual([2, [expect.stringContaining("S3")]]);
  await stopCleanly(server);
  const database = new Sqlite(join(server.dataDir, "vodbox.db"));
  database.exec(`INSERT INTO storage_place (id, active, other, phase, paused, quick, after_key, objects_done, bytes_done,
    objects_copied, bytes_copied, objects_verified, objects_mended, started_at, updated_at)
    VALUES (1, 'local', 's3', 'copying', 1, 0, '', 0, 0, 0, 0, 0, 0, 1, 1)`);
  database.close();
  const moving = await run([...several, "--data", server.dataDir, "--port", "0"]);
  expect([moving.code, moving.stderr]).toEqual([1, expect.stringContaining("Objects are being migrated")]);
  const none = await run(["serve", "--processes", "0", "--data", emptyFolder()]);
  expect([none.code, none.stderr]).toEqual([2, expect.stringContaining("--processes must be at least 1")]);
});
