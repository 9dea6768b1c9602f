import { beforeEach, expect, test, vi } from "vitest";
import { type TestApp, testApp } from "#test/support/app.ts";
import type { Answer } from "#test/support/client.ts";
import { until } from "#test/support/descendants.ts";
import { completeEarly, type Early, publishedEarly, requestEarly, storeEarly } from "#test/support/early.ts";
import { expectError } from "#test/support/error.ts";
import { uploaded } from "#test/support/flow.ts";
import { nextTask } from "#test/support/tasks.ts";

/** What on-request encoding may cost: who requests, how much at once, and only once. */
let app: TestApp;
beforeEach(async () => {
  app = await testApp({ lease_seconds: 60 });
  priority = 10;
});

let priority: number;

/** A tenant with an asset that is published, and whose chunks no worker has. Before any segment is requested. */
async function viewed(fields: Record<string, unknown> = {}) {
  const { id: tenantId } = await app.tenant();
  const key = await app.key(tenantId);
  return { ...(await another(key, fields)), key, tenantId };
}
async function another(key: string, fields: Record<string, unknown> = {}) {
  const early = await publishedEarly(app, key, { priority: ++priority, ...fields });
  // Its audio and its next segments, which are urgent.
  for (;;) {
    const { status, body } = await nextTask(app, undefined, { lane: "light" });
    if (status === 204) break;
    await completeEarly(app, body);
  }
  const { body: jobs } = await app.as(key).listJobs({ asset_id: early.id });
  const tasks = async () => (await app.as(key).getJob(jobs[0].id)).body.tasks.total;
  return { ...early, tasks };
}
const nameOf = (number: number) => `${String(number + 1).padStart(5, "0")}.m4s`;
const media = (made: Early, path: string, options = {}) => requestEarly(app, made, path, options);

/** Requests a segment, and waits until it has its own task. */
async function pending(made: Early & { tasks(): Promise<number> }, path: string, signal?: AbortSignal) {
  const before = await made.tasks();
  const answer = media(made, path, { ...(signal && { signal }) });
  await expect.poll(made.tasks, { interval: 20 }).toBeGreaterThan(before);
  return { made, path, answer };
}

const REQUESTED = [5, 9, 13, 17];
/** The queued tasks of requested segments, without those that are encoded after them; it claims both. */
async function requestedTasks(): Promise<any[]> {
  const found: any[] = [];
  // A worker encodes one of them at a time.
  for (let worker = 1; ; worker++) {
    const { status, body } = await nextTask(app, undefined, { lane: "light", worker_id: `w${worker}` });
    if (status === 204) return found;
    if (REQUESTED.includes(body.task.chunk.first_segment)) found.push(body);
  }
}

test("a stranger without a token cannot have signed media encoded", async () => {
  const made = await viewed({ playback_policy: "signed" });
  const path = `360p/${nameOf(12)}`;
  const { body: playback } = await app.as(made.key).getPlayback(made.id);
  const other = await viewed({ playback_policy: "signed" });
  const before = await made.tasks();
  expectError(await media(made, path), 403, "playback_token_required");
  for (const token of ["x", `${playback.token}x`])
    expectError(await media(made, path, { token }), 403, "playback_token_invalid");
  expectError(await media(other, path, { token: playback.token }), 403, "playback_token_invalid");
  expect(await made.tasks()).toBe(before);
  const answer = media(made, path, { token: playback.token });
  await expect.poll(made.tasks, { interval: 20 }).toBeGreaterThan(before);
  await storeEarly(app, made.prefix, path);
  expect((await answer).status).toBe(200);
});

test("nothing is encoded for a suspended tenant, for HEAD, and for what is not listed", async () => {
  const made = await viewed();
  const before = await made.tasks();
  expect((await media(made, `360p/${nameOf(12)}`, { method: "HEAD" })).status).toBe(404);
  const unlisted = [`360p/${nameOf(25)}`, `1080p/${nameOf(1)}`, `240p/${nameOf(1)}`, "360p/00000.m4s", "360p/12.m4s"];
  for (const path of [...unlisted, `__proto__/${nameOf(1)}`, `audio/${nameOf(60)}`, `audio-0x1/${nameOf(1)}`])
    expectError(await media(made, path), 404, "not_found");
  await app.as({ admin: app.admin }).updateTenant(made.tenantId, { status: "suspended" });
  expectError(await media(made, `360p/${nameOf(12)}`), 403, "tenant_suspended");
  await app.as({ admin: app.admin }).updateTenant(made.tenantId, { status: "active" });
  expect(await made.tasks()).toBe(before);
});

test("four segments of a tenant are encoded on request at once, whatever its assets, and other tenants have their own", async () => {
  const made = await viewed();
  const again = await another(made.key);
  const other = await viewed();
  const open = [];
  for (const number of REQUESTED) open.push(await pending(made, `360p/${nameOf(number)}`));
  const errors = vi.spyOn(app.opened.app.log, "error");
  for (const one of [made, again]) {
    const refused = await media(one, `360p/${nameOf(21)}`);
    expectError(refused, 503, "segment_not_ready");
    expect(refused.headers.get("retry-after")).toBe("2");
  }
  // A limit that works is no fault of the server, and a stranger could fill its log.
  expect(errors).not.toHaveBeenCalled();
  open.push(await pending(other, `360p/${nameOf(5)}`));
  // When one is encoded, the next is accepted.
  const [first] = (await requestedTasks()).filter(({ outputs }) => outputs.prefix === made.prefix);
  for (const { made: one, path } of open) await storeEarly(app, one.prefix, path);
  await completeEarly(app, first);
  expect((await Promise.all(open.map(({ answer }) => answer))).map(({ status }) => status)).toEqual(
    open.map(() => 200),
  );
  const next = await pending(made, `360p/${nameOf(21)}`);
  await storeEarly(app, made.prefix, next.path);
  expect((await next.answer).status).toBe(200);
});

/** Requests segments, one after another, each of which is dropped when it has its own task. */
async function dropped(made: Early & { tasks(): Promise<number> }, paths: string[]) {
  for (const path of paths) {
    const stop = new AbortController();
    const { answer } = await pending(made, path, stop.signal);
    stop.abort();
    expectError(await answer, 499, "client_closed_request");
  }
}
const light = async (worker: string) =>
  (await nextTask(app, undefined, { lane: "light", worker_id: worker })).body?.task;
const rangeOf = (task: any) => [task?.chunk?.renditions, task?.chunk?.first_segment];

test("what a viewer waits for precedes what was requested and dropped before, also on the worker that encodes it", async () => {
  const made = await viewed();
  await dropped(made, [`720p/${nameOf(5)}`]);
  const { answer, path } = await pending(made, `360p/${nameOf(5)}`);
  await until("the dropped one gave up its precedence", async () => rangeOf(await light("a"))[0]?.[0] === "360p");
  expect(rangeOf(await light("b"))).toEqual([["720p"], 5]);
  await storeEarly(app, made.prefix, path);
  expect((await answer).status).toBe(200);
  // The worker that encodes a dropped one takes what is waited for meanwhile.
  const stop = new AbortController();
  const running = await pending(made, `720p/${nameOf(13)}`, stop.signal);
  await until("it is leased", async () => rangeOf(await light("c"))[1] === 13);
  const next = await pending(made, `360p/${nameOf(17)}`);
  expect(await light("c")).toBeUndefined();
  stop.abort();
  expectError(await running.answer, 499, "client_closed_request");
  await until("it is leased as well", async () => rangeOf(await light("c"))[1] === 17);
  await storeEarly(app, made.prefix, next.path);
  expect((await next.answer).status).toBe(200);
});

test("a segment that is requested again after it was dropped is waited for again", async () => {
  const made = await viewed();
  await dropped(made, [`720p/${nameOf(5)}`]);
  const again = media(made, `720p/${nameOf(5)}`);
  const { answer, path } = await pending(made, `720p/${nameOf(9)}`);
  expect(rangeOf(await light("a"))).toEqual([["720p"], 5]);
  await storeEarly(app, made.prefix, `720p/${nameOf(5)}`);
  await storeEarly(app, made.prefix, path);
  expect([(await again).status, (await answer).status]).toEqual([200, 200]);
});

test("requests that are dropped count towards the limits, so that they cannot divide a whole video", async () => {
  const made = await viewed();
  await dropped(
    made,
    REQUESTED.map((number) => `360p/${nameOf(number)}`),
  );
  const before = await made.tasks();
  expectError(await media(made, `360p/${nameOf(21)}`), 503, "segment_not_ready");
  expect(await made.tasks()).toBe(before);
});

test("sixteen segments of all tenants are encoded on request at once", async () => {
  const tenants = [];
  for (let tenant = 0; tenant < 5; tenant++) tenants.push(await viewed());
  const fifth = tenants.pop() as Early;
  const open = [];
  for (const made of tenants) {
    for (const number of REQUESTED) open.push(await pending(made, `480p/${nameOf(number)}`));
    // Requests wait for eight seconds.
    for (const { made: one, path } of open) await storeEarly(app, one.prefix, path);
  }
  expectError(await media(fifth, `480p/${nameOf(5)}`), 503, "segment_not_ready");
  expect((await Promise.all(open.map(({ answer }) => answer))).every(({ status }) => status === 200)).toBe(true);
  expect(await requestedTasks()).toHaveLength(16);
});

test("viewers who request segments all the time delay another tenant by four tasks", async () => {
  const made = await viewed();
  const { id } = await app.tenant();
  await uploaded(app, await app.key(id));
  const claimed: number[] = [];
  // -1 is the plan of the other tenant.
  for (const number of [3, 5, 7, 9, 11, 13, 15, 17, 19, 21]) {
    const { answer, path } = await pending(made, `360p/${nameOf(number)}`);
    const { body } = await nextTask(app);
    claimed.push(body.task.kind === "plan" ? -1 : body.task.chunk.first_segment);
    if (body.task.kind === "plan") {
      // The requested segment is the next one.
      const { body: next } = await nextTask(app);
      expect(next.task.chunk).toMatchObject({ first_segment: number, is_urgent: true });
      await completeEarly(app, next);
    } else await completeEarly(app, body);
    await storeEarly(app, made.prefix, path);
    expect((await answer).status).toBe(200);
  }
  expect(claimed.filter((number) => number === -1)).toHaveLength(1);
  expect(claimed.indexOf(-1)).toBeLessThan(5);
});

/** The first answers of so many requests of one segment, all of which wait. */
async function crowd(made: Early, count: number, path: string) {
  const settled: Answer[] = [];
  const all = Array.from({ length: count }, async () => {
    const answer = await media(made, path);
    settled.push(answer);
    return answer;
  });
  return { all, settled };
}

test("a hundred requests of a tenant wait, for one task; the next is refused at once", async () => {
  const made = await viewed();
  const path = `720p/${nameOf(13)}`;
  const { all, settled } = await crowd(made, 101, path);
  await until("one is answered", () => settled.length > 0);
  expectError(settled[0] as Answer, 503, "segment_not_ready");
  await storeEarly(app, made.prefix, path);
  const statuses = (await Promise.all(all)).map(({ status }) => status);
  expect(statuses.filter((status) => status === 200)).toHaveLength(100);
  expect(await requestedTasks()).toHaveLength(1);
  // They no longer count.
  expect((await media(made, path)).status).toBe(200);
});

test("five hundred requests of all tenants wait", async () => {
  const path = `720p/${nameOf(15)}`;
  const tenants = [];
  for (let tenant = 0; tenant < 6; tenant++) tenants.push(await viewed());
  const crowds = await Promise.all(tenants.map((made) => crowd(made, 90, path)));
  const settled = () => crowds.flatMap((one) => one.settled);
  await until("forty are answered", () => settled().length >= 40);
  for (const answer of settled()) expectError(answer, 503, "segment_not_ready");
  for (const { prefix } of tenants) await storeEarly(app, prefix, path);
  const statuses = (await Promise.all(crowds.flatMap(({ all }) => all))).map(({ status }) => status);
  expect(statuses.filter((status) => status === 200)).toHaveLength(500);
});
