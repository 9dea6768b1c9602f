import { setTimeout as sleep } from "node:timers/promises";
import { beforeEach, describe, expect, test } from "vitest";
import { type TestApp, testApp } from "#test/support/app.ts";
import {
  completeEarly,
  type Early,
  earlyResult,
  publishedEarly,
  RENDITIONS,
  requestEarly,
  storeEarly,
} from "#test/support/early.ts";
import { expectError } from "#test/support/error.ts";
import { callback, uploaded } from "#test/support/flow.ts";
import { finish, nextTask, runAll } from "#test/support/tasks.ts";

let app: TestApp;
let key: string;
beforeEach(async () => {
  app = await testApp({ lease_seconds: 60, max_attempts: 2 });
  key = await app.key((await app.tenant()).id);
});

const asset = async (id: number) => (await app.as(key).getAsset(id)).body;
/** The next task of a worker that encodes another urgent chunk: no chunk. */
const light = async (worker = "w1") => (await nextTask(app, undefined, { lane: "light", worker_id: worker })).body;
const main = async () => (await nextTask(app)).body;
const store = (prefix: string, path: string) => storeEarly(app, prefix, path);
const complete = (contract: any) => completeEarly(app, contract);

/** Completes all tasks that are queued. The contract of the one that publishes. */
async function encodeRest(onTask: (contract: any) => void): Promise<any> {
  for (;;) {
    const contract = await main();
    if (contract.task.kind === "images") return contract;
    onTask(contract);
    await complete(contract);
  }
}

const published = () => publishedEarly(app, key);
const media = (made: Early, path: string) => requestEarly(app, made, path);

describe("an asset with early playback", () => {
  test("is ready when its head is published, and encoded when all tasks are complete", async () => {
    const { id, head, prefix } = await published();
    expect(head.task).toMatchObject({ kind: "chunk", publishes: true });
    expect(head.task.chunk).toMatchObject({
      first_segment: 0,
      segments: 1,
      renditions: ["480p", "360p"],
      is_urgent: true,
    });
    expect(await asset(id)).toMatchObject({ playback_status: "ready", encoding_status: "partial" });
    const types = (await app.newEvents()).map(({ type }) => type);
    expect(types.filter((type) => type === "video.asset.ready")).toHaveLength(1);
    const order: unknown[] = [];
    const images = await encodeRest(({ task }) =>
      order.push([task.kind, task.chunk?.first_segment, task.chunk?.renditions ?? null]),
    );
    expect(order.slice(0, 3)).toEqual([
      ["audio", undefined, null],
      ["chunk", 1, ["480p", "360p"]],
      ["chunk", 3, null],
    ]);
    expect(order.at(-1)).toEqual(["chunk", 0, ["720p"]]);
    expect(await asset(id)).toMatchObject({ encoding_status: "partial" });
    await finish(app, images);
    expect(await asset(id)).toMatchObject({ playback_status: "ready", encoding_status: "complete" });
    expect((await app.newEvents()).map(({ type }) => type)).not.toContain("video.asset.ready");
    expect(prefix).toBe((await asset(id)).manifest_path.replace(/[^/]*$/, ""));
  });

  test("emits video.asset.encoded to endpoints that name it, and to no others", async () => {
    const hook = (fields: Record<string, unknown>) =>
      app.as(hooks).createWebhook({ url: "https://example.com/hook", ...fields });
    const hooks = await app.key((await app.tenant()).id, [
      "webhooks:write",
      "webhooks:read",
      "assets:write",
      "assets:read",
    ]);
    const all = (await hook({})).body;
    const named = (await hook({ event_types: ["video.asset.encoded"] })).body;
    await uploaded(app, hooks);
    await runAll(app);
    const typesOf = async (id: number) => (await app.as(hooks).listDeliveries(id)).body.map((each) => each.event);
    expect(await typesOf(named.id)).toEqual(["video.asset.encoded"]);
    expect(await typesOf(all.id)).toContain("video.asset.ready");
    expect(await typesOf(all.id)).not.toContain("video.asset.encoded");
  });
});

describe("a segment that is not encoded yet", () => {
  test("becomes an urgent task, and is served when it is stored; nothing else is encoded twice", async () => {
    const made = await published();
    const busy = await main();
    expect(busy.task.kind).toBe("audio");
    await complete(await main());
    const answer = media(made, "720p/00013.m4s");
    const urgent = await waitForTask(light);
    expect(urgent.task.chunk).toMatchObject({ first_segment: 12, segments: 1, renditions: ["720p"], is_urgent: true });
    await store(made.prefix, "720p/00013.m4s");
    const { status, text } = await answer;
    expect([status, text]).toEqual([200, "720p/00013.m4s"]);
    // Everything else: each segment of each rendition is in exactly one task.
    await complete(urgent);
    await complete(busy);
    const seen = new Map<string, number>([
      ["720p 12", 1],
      ["480p 0", 1],
      ["360p 0", 1],
      ...[1, 2].flatMap((n): [string, number][] => [
        [`480p ${n}`, 1],
        [`360p ${n}`, 1],
      ]),
    ]);
    let after: number | undefined;
    const images = await encodeRest(({ task: { chunk } }) => {
      if (!chunk.is_urgent) after ??= chunk.first_segment;
      const end = chunk.first_segment + (chunk.segments ?? 25 - chunk.first_segment);
      for (const name of chunk.renditions ?? RENDITIONS)
        for (let n = chunk.first_segment; n < end; n++) seen.set(`${name} ${n}`, (seen.get(`${name} ${n}`) ?? 0) + 1);
    });
    expect(images.task.written.map((one: any) => [one.name, one.segments.length]).sort()).toEqual(
      [...RENDITIONS, "audio"].sort().map((name) => [name, 25]),
    );
    // From the playhead on.
    expect(after).toBe(12);
    expect(seen.size).toBe(75);
    expect([...seen.values()].every((count) => count === 1)).toBe(true);
  });

  test("is waited for when a worker encodes it already, and encoded once for all who request it", async () => {
    const made = await published();
    const audio = await main();
    const lead = await main();
    expect(lead.task.chunk).toMatchObject({ first_segment: 1, segments: 2 });
    const answers = [1, 2, 3].map(() => media(made, "480p/00002.m4s"));
    await store(made.prefix, "480p/00002.m4s");
    expect((await Promise.all(answers)).map(({ status }) => status)).toEqual([200, 200, 200]);
    const both = [media(made, "360p/00020.m4s"), media(made, "360p/00020.m4s")];
    const urgent = await waitForTask(() => light("w2"));
    expect(urgent.task.chunk).toMatchObject({ first_segment: 19, segments: 1, renditions: ["360p"] });
    const ahead = await light("w3");
    expect(ahead.task.chunk).toMatchObject({ first_segment: 20, segments: 2, renditions: ["360p"], is_urgent: true });
    expect((await nextTask(app, undefined, { lane: "light" })).status).toBe(204);
    await store(made.prefix, "360p/00020.m4s");
    expect((await Promise.all(both)).map(({ status }) => status)).toEqual([200, 200]);
    expect(audio.task.kind).toBe("audio");
  });

  test("is 503 with Retry-After when it takes too long, or too many are requested", async () => {
    const made = await published();
    const first = ["00005", "00007", "00009", "00011"].map((name) => media(made, `360p/${name}.m4s`));
    for (let i = 0; i < 4; i++)
      await waitForTask(
        () => light(`w${i + 2}`),
        ({ task }) => task.chunk?.is_urgent && task.chunk.first_segment > 3,
      );
    const more = await media(made, "360p/00015.m4s");
    expectError(more, 503, "segment_not_ready");
    expect(more.headers.get("retry-after")).toBe("2");
    expect(more.headers.get("cache-control")).toBe("no-store");
    for (const answer of await Promise.all(first)) expectError(answer, 503, "segment_not_ready");
  });

  test("is 404 when it is not listed", async () => {
    const made = await published();
    for (const path of ["360p/00026.m4s", "1080p/00001.m4s", "360p/00000.m4s", "audio/99999999.m4s", "x/00001.m4s"])
      expectError(await media(made, path), 404, "not_found");
  });

  test("is 404 once the job has failed; the asset stays ready", async () => {
    const made = await published();
    for (let attempt = 0; attempt < 2; attempt++) {
      const { body } = await nextTask(app);
      await callback(app, body, "fail", { code: "source_corrupt", message: "Damaged.", retryable: false });
      if (attempt === 0) break;
    }
    expect(await asset(made.id)).toMatchObject({
      playback_status: "ready",
      encoding_status: "failed",
      error: { code: "source_corrupt" },
    });
    expectError(await media(made, "360p/00020.m4s"), 404, "not_found");
    const { body: jobs } = await app.as({ admin: app.admin }).listJobs();
    await app.as({ admin: app.admin }).retryJob(jobs[0].id);
    expect(await asset(made.id)).toMatchObject({ playback_status: "ready", encoding_status: "partial" });
    expectError(await media(made, "360p/00020.m4s"), 503, "segment_not_ready");
  });
});

test("no clip is made of it, and its source is kept, until it is complete", async () => {
  const { id } = await published();
  const clip = await app.as(key).createClip(id, { start_seconds: 0, end_seconds: 8 });
  expectError(clip, 422, "clip_not_possible");
  expectError(await app.as(key).deleteSource(id), 409, "asset_conflict");
});

test("a chunk with other renditions than its own, or another init segment, is encoded in one run instead", async () => {
  await published();
  await complete(await main());
  const lead = await main();
  const body = earlyResult(lead);
  await callback(app, lead, "complete", { written: body.written.slice(1) });
  expect((await main()).task.kind).toBe("whole");
});

test("a source of which a plan does not say what will be listed is ready when it is complete", async () => {
  const { asset } = await uploaded(app, key, { early_playback: true });
  await finish(app, await main());
  const kinds = [];
  for (let each = await nextTask(app); each.status === 200; each = await nextTask(app)) {
    kinds.push(each.body.task.kind);
    expect(each.body.early_playback).toBe(false);
    expect((await app.as(key).getAsset(asset.id)).body.playback_status).toBe("processing");
    await finish(app, each.body);
  }
  expect(new Set(kinds)).toEqual(new Set(["audio", "chunk", "images"]));
  expect((await app.as(key).getAsset(asset.id)).body.playback_status).toBe("ready");
});

test("a light claim plans it while the worker encodes", async () => {
  await uploaded(app, key, { early_playback: false });
  expect((await nextTask(app, undefined, { lane: "light" })).status).toBe(204);
  await uploaded(app, key, { early_playback: true });
  expect((await light()).task.kind).toBe("plan");
});

/** The next light task that `isWanted`; others are kept. */
async function waitForTask(claim: () => Promise<any>, isWanted: (contract: any) => boolean = isUrgentChunk) {
  for (let i = 0; i < 100; i++) {
    const contract = await claim();
    if (contract?.task && isWanted(contract)) return contract;
    await sleep(20);
  }
  throw new Error("There is no such task.");
}
const isUrgentChunk = ({ task }: any) => task.kind === "chunk" && task.chunk.first_segment > 3;

test("is requested by the upload, else by the tenant, else by the setting", async () => {
  const { id } = await app.tenant();
  const own = await app.key(id);
  const patch = (early_playback: unknown) =>
    app.as({ admin: app.admin }).unchecked.updateTenant(id, { early_playback });
  const effective = async (fields: Record<string, unknown> = {}) => {
    const body = { filename: "a.mp4", bytes_expected: 10, tenant_id: id, title: "A", ...fields };
    return (await app.as(own).initiateUpload(body)).body.early_playback;
  };
  expect(await effective()).toBe(false);
  expect((await patch(true)).body.early_playback).toBe(true);
  expect(await effective()).toBe(true);
  expect(await effective({ early_playback: false })).toBe(false);
  expect((await patch("yes")).status).toBe(422);
  expect((await patch(null)).body.early_playback).toBeNull();
  expect(await effective()).toBe(false);
  expect(await effective({ early_playback: true })).toBe(true);
});
