import { beforeEach, expect, test } from "vitest";
import { type TestApp, testApp } from "#test/support/app.ts";
import { completeEarly, EARLY_PLAN, RENDITIONS, requestEarly, storeEarly } from "#test/support/early.ts";
import { putArtifacts, uploaded } from "#test/support/flow.ts";
import { finish, nextTask } from "#test/support/tasks.ts";

let app: TestApp;
let key: string;
beforeEach(async () => {
  app = await testApp({ lease_seconds: 60 });
  key = await app.key((await app.tenant()).id);
});

const asset = async (id: number) => (await app.as(key).getAsset(id)).body;
const job = async (id: number) => (await app.as({ admin: app.admin }).getJob(id)).body;
const planOf = (duration_seconds: number, renditions = EARLY_PLAN.early.renditions) => ({
  ...EARLY_PLAN,
  duration_seconds,
  early: { segments: Math.ceil(duration_seconds / 4), renditions },
});

/** The contract of the first task after the plan. */
async function begun(plan: Record<string, unknown>) {
  const made = await uploaded(app, key, { early_playback: true, playback_policy: "public" });
  await finish(app, (await nextTask(app)).body, plan);
  return { ...made, first: (await nextTask(app)).body };
}

async function published(plan: Record<string, unknown>, segments: number) {
  const { first: head, ...made } = await begun(plan);
  expect(head.task.publishes).toBe(true);
  const body = { ...(await putArtifacts(app, head)), media: { duration_seconds: 10, renditions: [] } };
  const lease = { worker: app.worker, lease: head.lease.token };
  expect((await app.call("POST", head.callbacks.publish_url, { ...lease, body })).status).toBe(200);
  expect(await asset(made.asset.id)).toMatchObject({ playback_status: "ready", encoding_status: "partial" });
  await completeEarly(app, head, segments);
  return { ...made, head, id: made.asset.id as number, prefix: head.outputs.prefix as string };
}

const shown = ({ task: { kind, chunk } }: any) => [kind, chunk?.first_segment, chunk?.segments, chunk?.renditions];

test.each([
  [13, 4],
  [12, 3],
  [9.5, 3],
  [8, 2],
])("a source of %d s is encoded in parts that have each segment once", async (duration, segments) => {
  const made = await published(planOf(duration), segments);
  const order: unknown[] = [];
  for (;;) {
    const { body } = await nextTask(app);
    if (body.task.kind === "images") {
      expect(body.task.written.map((one: any) => [one.name, one.segments.length]).sort()).toEqual(
        [...RENDITIONS, "audio"].sort().map((name) => [name, segments]),
      );
      await finish(app, body);
      break;
    }
    order.push(shown(body));
    await completeEarly(app, body, segments);
  }
  expect(order).toEqual([
    ["audio", undefined, undefined, undefined],
    ["chunk", 1, null, ["480p", "360p"]],
    ["chunk", 0, null, ["720p"]],
  ]);
  expect(await job(made.job.id)).toMatchObject({ status: "completed", attempt: 1, uncuttable: null, progress: 100 });
  expect(await asset(made.id)).toMatchObject({ encoding_status: "complete" });
});

test("a requested segment of another rendition becomes a task of its own", async () => {
  const made = await published(planOf(13), 4);
  const total = async () => (await job(made.job.id)).tasks.total;
  const before = await total();
  const answer = requestEarly(app, made, "720p/00002.m4s");
  // Before it, after it, and the segment itself.
  await expect.poll(total, { interval: 20 }).toBe(before + 2);
  const { body: urgent } = await nextTask(app, undefined, { worker_id: "w2" });
  expect(shown(urgent)).toEqual(["chunk", 1, 1, ["720p"]]);
  await storeEarly(app, made.prefix, "720p/00002.m4s");
  expect((await answer).status).toBe(200);
});

test.each([
  [
    "small renditions together",
    [1080, 720, 480, 360],
    [
      [1, null, [1080, 720, 480, 360]],
      [0, 1, [720]],
    ],
  ],
  [
    "large renditions apart",
    [2160, 1080, 480],
    [
      [1, null, [2160, 480]],
      [0, null, [1080]],
    ],
  ],
] as const)("next to a copied rendition, %s", async (_, ladder, chunks) => {
  const named = (lines: readonly number[]) => lines.map((each) => `${each}p`);
  const renditions = ladder.map((lines) => ({ name: `${lines}p`, width: 2 * lines, height: lines }));
  const { job: made } = await published({ ...planOf(12, renditions), segment_frames: [0, 120, 240] }, 3);
  const order: unknown[] = [];
  for (let { body } = await nextTask(app); body.task.kind !== "images"; { body } = await nextTask(app)) {
    if (body.task.kind === "chunk") order.push(shown(body).slice(1));
    await completeEarly(app, body, 3);
  }
  expect(order).toEqual(chunks.map(([first, count, lines]) => [first, count, named(lines)]));
  expect(await job(made.id)).toMatchObject({ progress: 97 });
});

test("one with low renditions only has no third part", async () => {
  const low = EARLY_PLAN.early.renditions.slice(1);
  const { first } = await begun({ ...planOf(10, low), has_audio: false });
  expect(shown(first)).toEqual(["chunk", 0, 1, ["480p", "360p"]]);
  // The chunk with number 0 may read all of the source, to compare its checksum: a viewer does not wait for that.
  expect(first.task.chunk.number).toBe(1);
  const { body: second } = await nextTask(app);
  expect([...shown(second), second.task.chunk.number]).toEqual(["chunk", 1, null, ["480p", "360p"], 0]);
  expect((await nextTask(app)).status).toBe(204);
});

test("one of a single whole segment is encoded in one run, which publishes nothing before its end", async () => {
  const { first: whole, job: made, asset: created } = await begun(planOf(7.9));
  expect(whole).toMatchObject({ task: { kind: "whole" }, early_playback: false });
  expect(await job(made.id)).toMatchObject({ uncuttable: "short" });
  await finish(app, whole);
  expect(await asset(created.id)).toMatchObject({ playback_status: "ready", encoding_status: "complete" });
  // So is one that cannot be cut for another reason.
  const long = await begun({ ...planOf(60), uncuttable: "long_gop" });
  expect(long.first).toMatchObject({ task: { kind: "whole" }, early_playback: false });
});
