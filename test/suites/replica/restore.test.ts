import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { amount, rows } from "#test/support/amount.ts";
import { until } from "#test/support/descendants.ts";
import { emptyFolder } from "#test/support/folder.ts";
import { caughtUp, contentsOf, generationsOf, load, readiness, replicated, slugsIn } from "#test/support/replicas.ts";

/** What may be lost when a directory is deleted under load. */
const LOST_MS = 1500;
const ROUNDS = amount(2, 4, "CRASH_ROUNDS");
/** The log is observed every 50 ms, on a busy machine less often. */
const MARGIN_MS = 1000;

test("a directory that is deleted under load loses at most what was acknowledged in the last 1.5 s before it reported a lag under a second", async () => {
  const replica = replicated(join(emptyFolder(), "replica"));
  const kept = new Set<string>();
  for (let round = 0; round < ROUNDS; round++) {
    const server = await replica.serve();
    const writing = load(server);
    // Enough for several checkpoints in some of the rounds.
    await writing.more(400 + round * 500);
    // A busy machine copies later, and reports that.
    const readAt = await until("the replica is less than a second behind", async () => {
      const at = Date.now();
      const { status, replica: state } = await readiness(server);
      expect([status, state.error]).toEqual([200, null]);
      return state.lag_seconds < 1 ? at : null;
    });
    server.child.kill("SIGKILL");
    replica.lose();
    await Promise.all([server.ended, writing.stop()]);
    expect(await replica.restore()).toContain("the database is intact");
    const found = slugsIn(replica.dataDir);
    const lost = [...writing.acknowledged].filter(([slug]) => !found.has(slug));
    expect(lost.filter(([, at]) => at < readAt - LOST_MS)).toEqual([]);
    // Also what earlier rounds restored.
    expect([...kept].filter((slug) => !found.has(slug))).toEqual([]);
    for (const slug of found) kept.add(slug);
    expect(writing.acknowledged.size).toBeGreaterThan(100);
  }
});

test("a restore to a time has everything that was written by then, and nothing from later", async () => {
  const replica = replicated(join(emptyFolder(), "replica"));
  const server = await replica.serve();
  await caughtUp(server);
  const writing = load(server, { clients: 4 });
  const times: number[] = [];
  for (let count = 0; count < 3; count++) {
    await writing.more(300);
    times.push(Date.now());
  }
  // Requests that are certainly later than the last time.
  const isLater = (time: number) => time > (times.at(-1) as number) + MARGIN_MS;
  await until("later requests", async () => [...writing.acknowledged.values()].some(isLater));
  await until("later requests", async () => [...writing.sent.values()].some(isLater));
  await writing.stop();
  await caughtUp(server);
  server.child.kill("SIGKILL");
  await server.ended;
  for (const at of times) {
    const to = join(emptyFolder(), "data");
    await replica.restore({ at, to });
    const found = slugsIn(to);
    const before = [...writing.acknowledged].filter(([, time]) => time <= at).map(([slug]) => slug);
    expect(before.length).toBeGreaterThan(20);
    expect(before.filter((slug) => !found.has(slug))).toEqual([]);
    const after = [...writing.sent].filter(([, time]) => time > at + MARGIN_MS).map(([slug]) => slug);
    expect(after.filter((slug) => found.has(slug))).toEqual([]);
    expect(after.length).toBeGreaterThan(0);
  }
});

test("a generation continues after any stop, and the replica equals the database", async () => {
  const replica = replicated(join(emptyFolder(), "replica"));
  const acknowledged = new Set<string>();
  let generation: string | undefined;
  for (const signal of rows(["SIGKILL", "SIGTERM", "SIGTERM", "SIGKILL", "SIGKILL", "SIGTERM"] as const, 2)) {
    const server = await replica.serve();
    const writing = load(server);
    await writing.more(amount(200, 400));
    if (signal === "SIGKILL") {
      server.child.kill(signal);
      await Promise.all([server.ended, writing.stop()]);
    } else {
      await writing.stop();
      server.child.kill(signal);
      expect((await server.ended).code).toBe(0);
    }
    for (const slug of writing.acknowledged.keys()) acknowledged.add(slug);
    const { begun, continued } = generationsOf(server);
    generation ??= begun[0];
    expect([...begun, ...continued]).toEqual([generation]);
  }
  const to = join(emptyFolder(), "data");
  await replica.restore({ to });
  const found = slugsIn(to);
  expect([...acknowledged].filter((slug) => !found.has(slug))).toEqual([]);
  expect(contentsOf(to)).toEqual(contentsOf(replica.dataDir));
});

test("a restored server keeps its tokens and continues the same replica as a new generation", async () => {
  const place = join(emptyFolder(), "replica");
  const replica = replicated(place, { VODBOX_ADMIN_TOKEN: "", VODBOX_WORKER_TOKEN: "" });
  const token = () => readFileSync(join(replica.dataDir, "secrets", "admin_token"), "utf8").trim();
  const server = await replica.serve();
  await caughtUp(server);
  const before = Date.now();
  const first = token();
  const rotated = await server.as({ admin: first }).rotateToken("worker");
  expect(rotated.status).toBe(200);
  // A restore to a time may also contain what was written less than one observation of the log later.
  await until("a time that can be distinguished", async () => Date.now() > before + MARGIN_MS);
  const created = await server.as({ admin: first }).createTenant({ name: "T", slug: "t" });
  expect(created.status).toBe(201);
  // Secrets are looked at once a second.
  await until("the rotated token in the replica", async () => (await secretsIn(place)).includes(rotated.body.token));
  await caughtUp(server);
  server.child.kill("SIGKILL");
  await server.ended;
  replica.lose();
  await replica.restore();
  expect(token()).toBe(first);
  const again = await replica.serve();
  await caughtUp(again);
  expect(generationsOf(again).begun).not.toEqual(generationsOf(server).begun);
  expect(generationsOf(again)).toMatchObject({ begun: [expect.any(String)], continued: [] });
  const found = await again.as({ admin: first }).getTenant("t");
  expect(found.body).toMatchObject({ id: created.body.id });
  again.child.kill("SIGTERM");
  await again.ended;

  // The time from before the rotation: the database of then, and the newest tokens.
  const old = join(emptyFolder(), "data");
  await replica.restore({ at: before, to: old });
  expect(slugsIn(old).has("t")).toBe(false);
  expect(readFileSync(join(old, "secrets", "worker_token"), "utf8").trim()).toBe(rotated.body.token);
});

async function secretsIn(place: string): Promise<string> {
  const names = await readdir(join(place, "secrets")).catch(() => []);
  return names.map((name) => readFileSync(join(place, "secrets", name), "utf8")).join();
}

test("a restore needs an empty directory, and an interrupted one can be repeated", async () => {
  const replica = replicated(join(emptyFolder(), "replica"));
  const server = await replica.serve();
  await caughtUp(server);
  const inUse = await replica.admin("restore", "--from", "x", "--data", replica.dataDir);
  expect(inUse).toMatchObject({ code: 1, stderr: expect.stringContaining("does not exist") });
  server.child.kill("SIGTERM");
  await server.ended;
  const place = emptyFolder();
  const full = join(place, "full");
  const torn = join(place, "torn");
  mkdirSync(full);
  writeFileSync(join(full, "precious"), "");
  const refused = await replica.admin("restore", "--from", "none", "--data", full);
  expect(refused.code).toBe(1);
  const from = (await replica.admin("replica", "status", "--json", "--data", replica.dataDir)).stdout;
  const { replica: text } = JSON.parse(from);
  const notEmpty = await replica.admin("restore", "--from", text, "--data", full);
  expect(notEmpty).toMatchObject({ code: 1, stderr: expect.stringContaining("is not empty: it contains precious") });
  // What a killed restore leaves.
  mkdirSync(join(torn, ".restoring"), { recursive: true });
  writeFileSync(join(torn, ".restoring", "vodbox.db"), "half");
  await replica.restore({ to: torn });
  expect(contentsOf(torn)).toEqual(contentsOf(replica.dataDir));
});

test("the status names the times that can be restored", async () => {
  const place = join(emptyFolder(), "replica");
  const replica = replicated(place);
  const before = Date.now();
  const server = await replica.serve();
  await caughtUp(server);
  const { code, stdout } = await replica.admin("replica", "status", "--json", "--data", replica.dataDir);
  expect(code).toBe(0);
  const status = JSON.parse(stdout);
  expect(status).toMatchObject({ replica: place, generations: 1, snapshots: 1, lag_seconds: 0, error: null });
  expect(Date.parse(status.restorable_from)).toBeGreaterThanOrEqual(before - 60_000);
  expect(Date.parse(status.restorable_to)).toBeGreaterThanOrEqual(Date.parse(status.restorable_from));
  expect(status.bytes).toBeGreaterThan(1000);
  const { text } = await server.call("GET", "/metrics", { admin: server.admin });
  expect(text).toMatch(/^vodbox_replica_lag_seconds [\d.]+$/m);

  // Without the data of its snapshot nothing can be restored, which a script learns by the exit code.
  const data = readdirSync(place, { recursive: true, encoding: "utf8" }).filter((name) => name.endsWith(".zst"));
  expect(data).toHaveLength(1);
  for (const name of data) rmSync(join(place, name));
  const torn = await replica.admin("replica", "status", "--json", "--data", replica.dataDir);
  expect([torn.code, JSON.parse(torn.stdout).faults.length]).toEqual([1, expect.any(Number)]);
  expect(JSON.parse(torn.stdout).faults).not.toEqual([]);
});
