import { beforeEach, describe, expect, test } from "vitest";
import type { App } from "#app.ts";
import { claim } from "#features/transcoding/claim.ts";
import { graceAfterStart } from "#features/transcoding/recover.ts";
import { type TestApp, testApp } from "#test/support/app.ts";
import { callback, next, uploaded } from "#test/support/flow.ts";
import { finish, nextTask, planned, runAll, runNext } from "#test/support/tasks.ts";

let app: TestApp;
let keys: Record<"a" | "b", string>;
const start = async (flags: Record<string, unknown> = {}) => {
  app = await testApp({ lease_seconds: 60, rate_limit_uploads: "10000/60", ...flags });
  const keyOf = async (slug: string) => app.key((await app.tenant({ slug })).id);
  keys = { a: await keyOf("a"), b: await keyOf("b") };
};
beforeEach(() => start());

const cloudClaim = () =>
  app.as({ worker: app.worker }).claimCloudJob({ worker_id: "cloud", capabilities: { tasks: 1 } });
/** Leases `count` units, and runs each. Returns `<name>:<kind>` of each. */
async function take(count: number, names: Map<number, string>): Promise<string[]> {
  const taken: string[] = [];
  for (let i = 0; i < count; i++) {
    const { status, body } = await nextTask(app);
    if (status === 204) break;
    const name = names.get(body.job.id) as string;
    taken.push(`${name}:${body.task.kind}`);
    const duration = name.startsWith("long") ? 3 * 3600 : 30;
    await finish(app, body, { duration_seconds: duration, has_audio: false });
  }
  return taken;
}

describe("between tenants", () => {
  test("a video of three hours delays another tenant's clip by at most one task", async () => {
    const names = new Map<number, string>();
    const long = await uploaded(app, keys.a);
    names.set(long.job.id, "long");
    expect(await take(5, names)).toEqual(["long:plan", ...Array(4).fill("long:chunk")]);
    for (let i = 0; i < 3; i++) {
      names.set((await uploaded(app, keys.b)).job.id, "clip");
      const taken = await take(3, names);
      const clip = taken.filter((each) => each.startsWith("clip"));
      expect(clip).toEqual(["clip:plan", "clip:whole"]);
      expect(taken.indexOf("clip:plan")).toBeLessThanOrEqual(1);
      expect(taken.indexOf("clip:whole")).toBe(taken.indexOf("clip:plan") + 1);
    }
  });

  test("two long videos share the workers equally, and a third gets its share at once", async () => {
    const names = new Map<number, string>();
    for (const who of ["a", "b"] as const) names.set((await uploaded(app, keys[who])).job.id, `long-${who}`);
    await take(2, names);
    const taken = await take(40, names);
    expect(taken.filter((each) => each === "long-a:chunk")).toHaveLength(20);
    const third = await app.key((await app.tenant()).id);
    names.set((await uploaded(app, third)).job.id, "long-c");
    const share = (await take(30, names)).filter((each) => each.startsWith("long-c"));
    expect(share.length).toBeGreaterThanOrEqual(10);
  });
});

describe("of one tenant", () => {
  test("tasks of a job that has begun precede later jobs", async () => {
    const names = new Map([[(await uploaded(app, keys.a)).job.id, "first"]]);
    expect((await runNext(app)).task.kind).toBe("plan");
    names.set((await uploaded(app, keys.a)).job.id, "second");
    const order: string[] = [];
    for (let contract = await runNext(app); contract; contract = await runNext(app))
      order.push(`${names.get(contract.job.id)}:${contract.task.kind}`);
    const parts = (name: string) => ["audio", ...Array(5).fill("chunk"), "images"].map((kind) => `${name}:${kind}`);
    expect(order).toEqual([...parts("first"), "second:plan", ...parts("second")]);
  });

  test("a priority applies to the tasks of a running job, and to those that follow", async () => {
    const first = (await uploaded(app, keys.a)).job.id;
    await runNext(app);
    const second = (await uploaded(app, keys.a, { priority: 5 })).job.id;
    const kinds = async () => {
      const { body } = await nextTask(app);
      await finish(app, body);
      return [body.job.id, body.task.kind];
    };
    expect(await kinds()).toEqual([second, "plan"]);
    const prioritize = (id: number, priority: number) => app.as({ admin: app.admin }).prioritizeJob(id, { priority });
    await prioritize(first, 6);
    for (const kind of ["audio", ...Array(5).fill("chunk"), "images"]) expect(await kinds()).toEqual([first, kind]);
    expect(await kinds()).toEqual([second, "audio"]);
  });

  test("above ten, tasks precede those of all tenants", async () => {
    await uploaded(app, keys.a);
    await runNext(app);
    const other = (await uploaded(app, keys.b)).job.id;
    await app.as({ admin: app.admin }).prioritizeJob(other, { priority: 50 });
    for (let i = 0; i < 8; i++) expect((await runNext(app)).job.id).toBe(other);
  });
});

describe("a worker that takes no tasks", () => {
  test("gets whole jobs, and none that has begun in tasks", async () => {
    const first = await uploaded(app, keys.a);
    const second = await uploaded(app, keys.a);
    await runNext(app);
    for (const claim of [() => next(app), cloudClaim]) {
      const { status, body } = await claim();
      if (body) expect([body.job.id, body.task]).toEqual([second.job.id, undefined]);
      else expect(status).toBe(204);
    }
    expect(await runAll(app)).toHaveLength(7);
    const { body } = await app.as({ admin: app.admin }).getJob(first.job.id);
    expect(body.status).toBe("completed");
  });

  test("and waits does not keep a task from one that takes them", async () => {
    await uploaded(app, keys.a);
    const { body: plan } = await nextTask(app);
    const old = next(app, "old", { worker_id: "old", wait_seconds: 20 });
    const capable = nextTask(app, "capable", { wait_seconds: 20 });
    await finish(app, plan);
    expect((await capable).body.task.kind).toBe("audio");
    await uploaded(app, keys.b);
    expect((await old).body.task).toBeUndefined();
  });

  test("runs a job that is shown without tasks", async () => {
    const { job } = await uploaded(app, keys.a);
    const shown = async () => (await app.as(keys.a).getJob(job.id)).body;
    const none = { tasks: { total: 0, queued: 0, running: 0, completed: 0, failed: 0 }, uncuttable: null };
    expect(await shown()).toMatchObject({ status: "queued", ...none });
    await next(app);
    expect(await shown()).toMatchObject({ status: "running", ...none });
  });
});

describe("with parallel=off", () => {
  test("workers get whole jobs", async () => {
    await start({ parallel: "off" });
    const { job } = await uploaded(app, keys.a);
    const { body } = await nextTask(app);
    expect([body.job.id, body.task]).toEqual([job.id, undefined]);
    expect((await callback(app, body, "heartbeat", { progress: 1 })).status).toBe(200);
  });

  test("tasks that exist are completed", async () => {
    await uploaded(app, keys.a);
    await runNext(app);
    await uploaded(app, keys.a);
    // The server is started again with another setting.
    const { app: before } = app.opened;
    const restarted: App = { ...before, config: { ...before.config, parallel: "off" } };
    const claimed = async (key: string) => {
      const capabilities = { tasks: 3, clips: 1, joins: 1, captions: 0 };
      const leased = await claim(restarted, { key, workerId: null }, { capabilities, lane: "main" });
      return leased?.task.knownAsJob ? "job" : leased?.task.kind;
    };
    expect(await claimed("one")).toBe("audio");
    for (let i = 0; i < 5; i++) expect((await runNext(app)).task.kind).toBe("chunk");
    expect((await finish(app, (await nextTask(app, "one")).body)).status).toBe("running");
    expect(await claimed("two")).toBe("images");
    expect(await claimed("three")).toBe("job");
    const { body } = await app.as({ admin: app.admin }).listJobs({ status: "queued" });
    expect(body).toEqual([]);
  });
});

test("chunks have the length of the setting", async () => {
  await start({ chunk_seconds: 8 });
  await uploaded(app, keys.a);
  await runNext(app, planned());
  const lengths = [];
  for (let each = await nextTask(app); each.status === 200; each = await nextTask(app))
    if (each.body.task.chunk) lengths.push(each.body.task.chunk.segments);
  expect(lengths).toEqual([...Array(11).fill(2), null]);
});

test("a restart of the server renews the leases of tasks that expired meanwhile", async () => {
  await uploaded(app, keys.a);
  const { body: plan } = await nextTask(app);
  app.advance(120_000);
  await graceAfterStart(app.opened.app);
  // Workers on a busy machine may take a while to find the server again.
  app.advance(45_000);
  await app.runTask("recover-leases");
  expect((await callback(app, plan, "heartbeat")).status).toBe(200);
  await finish(app, plan);
});

test("the metrics count the leases of tasks", async () => {
  await uploaded(app, keys.a);
  await runNext(app);
  for (let i = 0; i < 3; i++) await nextTask(app);
  const { text } = await app.call("GET", "/metrics", { admin: app.admin });
  expect(text).toMatch(/^vodbox_leases 3$/m);
});
