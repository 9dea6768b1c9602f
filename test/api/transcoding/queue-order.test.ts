import { beforeEach, describe, expect, test } from "vitest";
import { type TestApp, testApp } from "#test/support/app.ts";
import { expectError } from "#test/support/error.ts";
import { callback, next, uploaded } from "#test/support/flow.ts";

let app: TestApp;
let keys: Record<"a" | "b" | "c", string>;
beforeEach(async () => {
  app = await testApp({
    lease_seconds: 60,
    job_timeout_seconds: 3600,
    job_stall_seconds: 600,
    rate_limit_uploads: "10000/60",
  });
  const keyOf = async (slug: string) => app.key((await app.tenant({ slug })).id);
  keys = { a: await keyOf("a"), b: await keyOf("b"), c: await keyOf("c") };
});
type Who = keyof typeof keys;

/** Names of the queued jobs in the order in which they are leased. */
const queued = new Map<number, string>();
async function queue(who: Who, name: string, fields: Record<string, unknown> = {}) {
  const { job, asset } = await uploaded(app, keys[who], fields);
  queued.set(job.id, name);
  return { job, asset };
}
const many = async (who: Who, count: number) => {
  for (let i = 1; i <= count; i++) await queue(who, `${who}${i}`);
};
async function take(count = 100): Promise<string[]> {
  const names: string[] = [];
  for (let i = 0; i < count; i++) {
    const { status, body } = await next(app);
    if (status === 204) break;
    names.push(queued.get(body.job.id) as string);
  }
  return names;
}

describe("between tenants", () => {
  test("one upload does not wait for another tenant's hundred", async () => {
    await many("a", 100);
    expect(await take(10)).toEqual(Array.from({ length: 10 }, (_, i) => `a${i + 1}`));
    await queue("b", "b1");
    await queue("c", "c1");
    expect((await take(3)).sort()).toEqual(["a11", "b1", "c1"]);
  });

  test("the queues are served round robin, in any order of arrival", async () => {
    await many("a", 6);
    await many("b", 3);
    await many("c", 2);
    expect(await take()).toEqual(["a1", "b1", "c1", "a2", "b2", "c2", "a3", "b3", "a4", "a5", "a6"]);
  });

  test("a tenant that returns continuously gets its share, not every job", async () => {
    await many("a", 5);
    const order: string[] = [];
    for (let i = 1; i <= 3; i++) {
      await queue("b", `b${i}`);
      order.push(...(await take(2)));
    }
    expect(order.filter((name) => name.startsWith("a"))).toHaveLength(3);
  });
});

describe("a priority", () => {
  test("orders a tenant's own jobs, without changing its share", async () => {
    await many("a", 3);
    await queue("a", "a-urgent", { priority: 10 });
    await queue("a", "a-late", { priority: -10 });
    await many("b", 3);
    const order = await take();
    expect(order.filter((name) => name.startsWith("a"))).toEqual(["a-urgent", "a1", "a2", "a3", "a-late"]);
    expect(order.slice(0, 6).filter((name) => name.startsWith("b"))).toEqual(["b1", "b2", "b3"]);
  });

  test("above ten is the operator's, and precedes all tenants", async () => {
    await many("a", 2);
    const { job } = await queue("b", "b1");
    await queue("b", "b2");
    for (const priority of [11, 101, -11, 0.5, "high"])
      expect(
        (await app.as(keys.a).unchecked.initiateUpload({ filename: "x.mp4", bytes_expected: 1, priority })).status,
      ).toBe(422);
    expectError(await app.as(keys.b).prioritizeJob(job.id, { priority: 5 }), 401, "unauthorized");
    const raised = await app.as({ admin: app.admin }).prioritizeJob(job.id, { priority: 50 });
    expect(raised.body).toMatchObject({ id: job.id, priority: 50, status: "queued" });
    expect(await take()).toEqual(["b1", "a1", "a2", "b2"]);
    const ended = (await uploaded(app, keys.a)).job;
    await app.as({ admin: app.admin }).cancelJob(ended.id);
    expectError(await app.as({ admin: app.admin }).prioritizeJob(ended.id, { priority: 1 }), 409, "job_conflict");
  });
});

describe("an attempt", () => {
  const beat = (contract: any, body: unknown) => callback(app, contract, "heartbeat", body);

  test("without progress in its heartbeats is given to another worker", async () => {
    const { job } = await queue("a", "a1");
    const { body: contract } = await next(app);
    await beat(contract, { progress: 1.01, stage: "encoding" });
    for (let i = 0; i < 11; i++) {
      app.advance(50_000);
      // Hundredths are progress too.
      expect((await beat(contract, { progress: i < 3 ? 1.02 + i / 100 : 1.04 })).status).toBe(200);
      await app.runTask("recover-leases");
    }
    await app.newEvents();
    for (let i = 0; i < 4; i++) {
      app.advance(50_000);
      await beat(contract, { progress: 1.04 });
    }
    await app.runTask("recover-leases");
    expect((await app.newEvents()).map(({ type, data }) => [type, data.error_code])).toEqual([
      ["video.job.failed", "stalled"],
      ["video.job.queued", null],
    ]);
    expect((await beat(contract, {})).status).toBe(409);
    expect((await next(app)).body.job).toMatchObject({ id: job.id, attempt: 2 });
  });

  test("that makes progress is not ended without a time limit, and one that makes none is after ten minutes", async () => {
    app = await testApp({ lease_seconds: 650 });
    keys.a = await app.key((await app.tenant({ slug: "a" })).id);
    const { job } = await queue("a", "a1");
    const { body: contract } = await next(app);
    const statusAfter = async (seconds: number, body: unknown) => {
      app.advance(seconds * 1000);
      await beat(contract, body);
      await app.runTask("recover-leases");
      return (await app.as(keys.a).getJob(job.id)).body.status;
    };
    // More than two days.
    for (let step = 1; step <= 320; step++) await statusAfter(550, { progress: step / 100 });
    expect(await statusAfter(550, { progress: 3.21 })).toBe("running");
    // A later stage is progress, once, and begins at 0 again.
    expect(await statusAfter(550, { progress: 0, stage: "publishing" })).toBe("running");
    expect(await statusAfter(550, { progress: 90, stage: "encoding" })).toBe("running");
    expect(await statusAfter(100, { progress: 91, stage: "encoding" })).toBe("queued");
  });

  test("that reaches the time limit is the last", async () => {
    const { asset } = await queue("a", "a1");
    const { body: contract } = await next(app);
    for (let i = 1; i <= 72; i++) {
      app.advance(50_000);
      expect((await beat(contract, { progress: i })).status).toBe(200);
      await app.runTask("recover-leases");
      if (i < 72) continue;
      expect((await beat(contract, { progress: i + 1 })).status).toBe(409);
    }
    expect((await app.as(keys.a).getAsset(asset.id)).body).toMatchObject({
      playback_status: "errored",
      error: { code: "time_limit_exceeded" },
    });
  });

  test("keeps the last lines of ffmpeg, for the operator", async () => {
    const { job } = await queue("a", "a1");
    const { body: contract } = await next(app);
    await callback(app, contract, "fail", { code: "encode_failed", log_tail: "moov atom not found" });
    expect((await app.as({ admin: app.admin }).getJob(job.id)).body.log_tail).toBe("moov atom not found");
    expect((await app.as(keys.a).getJob(job.id)).text).not.toContain("moov");
  });
});
