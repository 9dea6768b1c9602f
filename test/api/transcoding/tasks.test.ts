import { beforeEach, describe, expect, test } from "vitest";
import { type TestApp, testApp } from "#test/support/app.ts";
import type { Answer } from "#test/support/client.ts";
import { expectError } from "#test/support/error.ts";
import { callback, putArtifacts, uploaded } from "#test/support/flow.ts";
import { finish, nextTask, planned, resultOf, runAll, runNext, written } from "#test/support/tasks.ts";

let app: TestApp;
let key: string;
beforeEach(async () => {
  app = await testApp({ lease_seconds: 60, max_attempts: 3 });
  key = await app.key((await app.tenant()).id);
});
const types = async () => (await app.newEvents()).map((event) => event.type);
const job = async (id: number) => (await app.as(key).getJob(id)).body;
const asset = async (id: number) => (await app.as(key).getAsset(id)).body;

describe("a job in tasks", () => {
  // Workers before this version reported the checksum of the source with the first part.
  test.each([
    ["last", 17],
    ["first", 0],
  ])("encodes the audio of a long video in parts, each once; the %s one has the checksum", async (_, summing) => {
    const made = await uploaded(app, key);
    const source_sha256 = "b".repeat(64);
    const renditions = planned().plan.renditions.map((name) => ({ name, width: 640, height: 360 }));
    const early = { segments: 300, renditions, audio_step: 2 };
    await finish(app, (await nextTask(app)).body, { duration_seconds: 1200, early });
    const light = async () => (await nextTask(app, undefined, { lane: "light" })).body;
    const ranges = [];
    for (let part = await light(); part; part = await light()) {
      expect(part.task.kind).toBe("audio");
      ranges.push([part.task.chunk.first_segment, part.task.chunk.segments]);
      const media = part.task.chunk.number === summing ? { media: { source_sha256 } } : {};
      await callback(app, part, "complete", { written: written(part, { last: 28 }), ...media });
    }
    expect(ranges).toEqual([...Array.from({ length: 17 }, (_, index) => [16 * index, 16]), [272, null]]);
    let images = (await nextTask(app)).body;
    for (; images.task.kind === "chunk"; images = (await nextTask(app)).body) await finish(app, images);
    const audio = images.task.written.find(({ name }: { name: string }) => name === "audio");
    expect(audio.segments).toHaveLength(300);
    await finish(app, images);
    expect(await job(made.job.id)).toMatchObject({ status: "completed", attempt: 1 });
    expect(await asset(made.asset.id)).toMatchObject({ source_sha256 });
  });

  test("is planned, encoded in chunks and published once, by any workers", async () => {
    const made = await uploaded(app, key);
    await app.newEvents();
    const { body: plan } = await nextTask(app);
    expect(plan.task).toMatchObject({ kind: "plan", plan: null, chunk: null, written: null });
    expect(plan.lease.heartbeat_interval_seconds).toBe(15);
    for (const url of [...Object.values(plan.callbacks), plan.artifacts.sign_url])
      expect(url).toContain(`/api/v1/transcoding_jobs/${made.job.id}/tasks/${plan.task.id}/`);
    expect(await types()).toEqual(["video.job.started"]);
    expect(await job(made.job.id)).toMatchObject({ status: "running", stage: "planning", attempt: 1, worker_id: "w1" });
    // Nothing else can begin.
    expect((await nextTask(app)).status).toBe(204);
    await finish(app, plan);

    const claimed = [];
    for (let next = await nextTask(app); next.status === 200; next = await nextTask(app)) claimed.push(next.body);
    expect(claimed.map(({ task }) => task.kind)).toEqual(["audio", "chunk", "chunk", "chunk", "chunk", "chunk"]);
    const [audio, ...chunks] = claimed;
    expect(chunks.map(({ task }) => task.chunk)).toEqual([
      { number: 0, first_segment: 0, segments: 5, first_frame: 0, end_frame: 600, renditions: null, is_urgent: false },
      {
        number: 1,
        first_segment: 5,
        segments: 5,
        first_frame: 600,
        end_frame: 1200,
        renditions: null,
        is_urgent: false,
      },
      {
        number: 2,
        first_segment: 10,
        segments: 5,
        first_frame: 1200,
        end_frame: 1800,
        renditions: null,
        is_urgent: false,
      },
      {
        number: 3,
        first_segment: 15,
        segments: 5,
        first_frame: 1800,
        end_frame: 2400,
        renditions: null,
        is_urgent: false,
      },
      {
        number: 4,
        first_segment: 20,
        segments: null,
        first_frame: 2400,
        end_frame: null,
        renditions: null,
        is_urgent: false,
      },
    ]);
    for (const { task, outputs } of claimed) {
      expect(task.plan).toEqual(planned().plan);
      expect(outputs.prefix).toBe(plan.outputs.prefix);
    }
    expect((await job(made.job.id)).tasks).toEqual({ total: 8, queued: 1, running: 6, completed: 1, failed: 0 });
    // In any order.
    for (const each of [...chunks.reverse(), audio]) {
      expect((await nextTask(app)).status).toBe(204);
      await finish(app, each);
    }
    expect(await asset(made.asset.id)).toMatchObject({ playback_status: "processing", stage: "publishing" });
    const { body: images } = await nextTask(app);
    expect(images.task).toMatchObject({ kind: "images", plan: planned().plan, chunk: null });
    expect(images.task.written.map((each: any) => [each.name, each.first, each.segments.length])).toEqual([
      ["360p", 0, 25],
      ["720p", 0, 25],
      ["audio", 0, 25],
    ]);
    const starts = images.task.written[0].segments.map((segment: number[]) => segment[1]);
    expect(starts).toEqual(Array.from({ length: 25 }, (_, index) => index * 61_440));
    expect(await types()).toEqual([]);
    expect(await finish(app, images)).toMatchObject({
      id: made.job.id,
      status: "completed",
      progress: 100,
      attempt: 1,
    });
    expect(await types()).toEqual(["video.asset.ready"]);
    expect(await asset(made.asset.id)).toMatchObject({
      playback_status: "ready",
      duration_seconds: 100,
      progress: 100,
    });
    expect(await job(made.job.id)).toMatchObject({
      tasks: { total: 8, queued: 0, running: 0, completed: 8, failed: 0 },
      uncuttable: null,
      stage: "completed",
    });
    expect((await nextTask(app)).status).toBe(204);
  });

  test("shows the sum of their progress, which never decreases", async () => {
    const made = await uploaded(app, key);
    const { body: plan } = await nextTask(app);
    const shown = async () => (await job(made.job.id)).progress;
    await callback(app, plan, "heartbeat", { progress: 50, stage: "probing" });
    expect([await shown(), (await job(made.job.id)).stage]).toEqual([1, "planning"]);
    await finish(app, plan);
    expect(await shown()).toBe(2);
    const { body: audio } = await nextTask(app);
    const { body: chunk } = await nextTask(app);
    await callback(app, audio, "heartbeat", { progress: 100 });
    expect(await shown()).toBe(5);
    // 92 % over five chunks.
    await callback(app, chunk, "heartbeat", { progress: 50 });
    expect(await shown()).toBe(14);
    expect(await asset(made.asset.id)).toMatchObject({ progress: 14, stage: "encoding" });
    await callback(app, chunk, "release");
    expect(await shown()).toBe(14);
    const again = (await nextTask(app)).body;
    expect(again.task).toEqual(chunk.task);
    await callback(app, again, "heartbeat", { progress: 10 });
    expect(await shown()).toBe(14);
    await finish(app, again);
    expect(await shown()).toBe(23);
    await finish(app, audio);
    expect(await runAll(app)).toEqual(["chunk", "chunk", "chunk", "chunk", "images"]);
    expect(await shown()).toBe(100);
  });

  test("has all of its results in the contract of `images`, which can read them", async () => {
    await uploaded(app, key);
    await runNext(app, { has_audio: false });
    const { body: chunk } = await nextTask(app);
    const paths = await putArtifacts(app, chunk, { [`${chunk.outputs.prefix}360p/1.m4s`]: "segment 1" });
    expect(paths.manifest_path).toContain(chunk.outputs.prefix);
    const signed = await app.call("POST", chunk.artifacts.sign_url, {
      worker: app.worker,
      lease: chunk.lease.token,
      body: { paths: [`${chunk.outputs.prefix}360p/1.m4s`], method: "GET" },
    });
    expect(signed.body[0].method).toBe("GET");
    expect((await app.call("GET", signed.body[0].url, { headers: signed.body[0].headers })).text).toBe("segment 1");
    const elsewhere = await app.call("POST", chunk.artifacts.sign_url, {
      worker: app.worker,
      lease: chunk.lease.token,
      body: { paths: ["tenants/1/sources/x.mp4"], method: "GET" },
    });
    expectError(elsewhere, 422, "validation_failed");
  });
});

describe("the checksum of a source", () => {
  const sum = "b".repeat(64);
  /** Runs all tasks; those of `kind` report the checksum. */
  async function run(kind: string, plan: Record<string, unknown>, upload: Record<string, unknown> = {}) {
    const made = await uploaded(app, key, upload);
    let last: Answer | null = null;
    for (let { body, status } = await nextTask(app); status !== 204; { body, status } = await nextTask(app)) {
      const result: any = await resultOf(app, body, plan);
      const isReporting = body.task.kind === kind && (body.task.chunk?.number ?? 0) === 0;
      const media = { ...result.media, source_sha256: sum };
      last = await callback(app, body, "complete", isReporting ? { ...result, media } : result);
    }
    const { body } = await app.as(key).getAsset(made.asset.id);
    return { last, asset: body, job: await job(made.job.id) };
  }

  test("is that of the audio task, or of the first chunk of one without audio", async () => {
    expect((await run("audio", {})).asset).toMatchObject({ playback_status: "ready", source_sha256: sum });
    const silent = await run("chunk", { has_audio: false });
    expect(silent.asset).toMatchObject({ playback_status: "ready", source_sha256: sum });
    expect((await run("none", {})).asset).toMatchObject({ playback_status: "ready", source_sha256: null });
  });

  test("fails the job if another one was announced", async () => {
    const { last, job } = await run("audio", {}, { sha256: "c".repeat(64) });
    expectError(last as Answer, 422, "source_corrupt");
    expect(job).toMatchObject({ status: "failed", error: { code: "source_corrupt" } });
  });
});

describe("a source that is not cut", () => {
  const whole = async (fields: Record<string, unknown>, upload: Record<string, unknown> = {}) => {
    const made = await uploaded(app, key, upload);
    await runNext(app, fields);
    const { body } = await nextTask(app);
    expect(body.task).toMatchObject({ kind: "whole", plan: null, chunk: null, written: null });
    expect((await nextTask(app)).status).toBe(204);
    const { uncuttable } = await job(made.job.id);
    await finish(app, body);
    expect(await job(made.job.id)).toMatchObject({ status: "completed", progress: 100 });
    return uncuttable;
  };

  test("is one task, and the reason is shown", async () => {
    expect(await whole({ uncuttable: "held_frame" })).toBe("held_frame");
    expect(await whole({ duration_seconds: 39.9 })).toBe("short");
    expect(await whole({ duration_seconds: null })).toBe("unknown_duration");
    expect(await whole({ frame_rate: null })).toBe("no_video");
    expect(await whole({ duration_seconds: 86_401 })).toBe("too_long");
    expect(await whole({ frame_rate: { num: 1, den: 5 } })).toBe("long_gop");
  });

  test("is ready when it is complete, also with early playback", async () => {
    const { asset } = await uploaded(app, key, { early_playback: true });
    const { body: plan } = await nextTask(app);
    const publish = async (contract: any) =>
      app.call("POST", contract.callbacks.complete_url.replace(/complete$/, "publish"), {
        worker: app.worker,
        lease: contract.lease.token,
        body: (await resultOf(app, { ...contract, task: { kind: "whole" } })) as object,
      });
    expectError(await publish(plan), 422, "validation_failed");
    await finish(app, plan, { uncuttable: "long_gop" });
    const { body: task } = await nextTask(app);
    expect(task).toMatchObject({ early_playback: false, task: { kind: "whole" } });
    await app.newEvents();
    expectError(await publish(task), 422, "validation_failed");
    expect((await app.as(key).getAsset(asset.id)).body.playback_status).toBe("processing");
    expect(await types()).toEqual([]);
    await finish(app, task);
    expect(await types()).toEqual(["video.asset.ready"]);
  });

  test("reports its own stages", async () => {
    const made = await uploaded(app, key);
    await runNext(app, { uncuttable: "long_gop" });
    const { body: task } = await nextTask(app);
    await callback(app, task, "heartbeat", { progress: 50, stage: "downloading", log_tail: "frame=1" });
    expect(await job(made.job.id)).toMatchObject({ stage: "downloading", progress: 51 });
    const { body } = await app.as({ admin: app.admin }).getJob(made.job.id);
    expect(body.log_tail).toBe("frame=1");
  });
});

describe("a result", () => {
  test("that is missing or too large is refused", async () => {
    await uploaded(app, key);
    const { body: plan } = await nextTask(app);
    const refused = async (contract: any, body: unknown) =>
      expectError(await callback(app, contract, "complete", body), 422, "invalid_transcoding_result");
    await refused(plan, {});
    await refused(plan, { plan: planned({ plan: { text: "x".repeat(128 * 1024) } }) });
    await refused(plan, { plan: planned({ frame_rate: { num: 1001, den: 1 } }) });
    for (const frames of [
      [1, 120],
      [0, 120, 120],
      [0, 240, 120],
    ])
      await refused(plan, { plan: planned({ segment_frames: frames }) });
    for (const wrong of [{ segment_frames: [] }, { segment_frames: [0.5] }])
      expectError(await callback(app, plan, "complete", { plan: planned(wrong) }), 422, "validation_failed");
    for (const wrong of [{ frame_rate: { num: 30, den: 0 } }, { segment_seconds: 0 }, { uncuttable: "mood" }])
      expectError(await callback(app, plan, "complete", { plan: planned(wrong) }), 422, "validation_failed");
    await finish(app, plan);
    const { body: audio } = await nextTask(app);
    const { body: chunk } = await nextTask(app);
    const [one, two] = written(chunk);
    await refused(chunk, {});
    await refused(chunk, { written: [] });
    await refused(chunk, { written: [one, { ...two, name: one.name }] });
    for (const name of ["../x", "a/b", "", ".."])
      expectError(await callback(app, chunk, "complete", { written: [{ ...one, name }] }), 422, "validation_failed");
    await finish(app, chunk);
    await finish(app, audio);
    await runNext(app);
  });

  test("may be sent twice, and counts once", async () => {
    const made = await uploaded(app, key);
    for (let next = await nextTask(app); next.status === 200; next = await nextTask(app)) {
      const body = await resultOf(app, next.body);
      const first = await callback(app, next.body, "complete", body);
      const again = await callback(app, next.body, "complete", body);
      expect([again.status, again.body]).toEqual([first.status, first.body]);
      expectError(
        await callback(app, next.body, "complete", { ...(body as object), storyboard_path: "x" }),
        409,
        "stale_lease",
      );
    }
    expect(await job(made.job.id)).toMatchObject({ status: "completed", tasks: { total: 8, completed: 8 } });
    expect((await types()).filter((type) => type === "video.asset.ready")).toHaveLength(1);
  });
});

describe("a claim", () => {
  test("that is repeated returns the same task while its lease is valid", async () => {
    app.stopClock();
    await uploaded(app, key);
    const first = await nextTask(app, "mine");
    expect((await nextTask(app, "mine")).body).toEqual(first.body);
    await finish(app, first.body);
    expectError(await nextTask(app, "mine"), 409, "stale_lease");
    const audio = await nextTask(app, "audio");
    expect((await nextTask(app, "audio")).body).toEqual(audio.body);
    app.advance(61_000);
    expectError(await nextTask(app, "audio"), 409, "stale_lease");
    await app.runTask("recover-leases");
    expectError(await nextTask(app, "audio"), 409, "stale_lease");
  });

  test("waits for a task when requested", async () => {
    await uploaded(app, key);
    const { body: plan } = await nextTask(app);
    const waiting = nextTask(app, "patient", { wait_seconds: 20 });
    await finish(app, plan);
    expect((await waiting).body.task.kind).toBe("audio");
  });

  test("shows the job in the list of workers, once each", async () => {
    const made = await uploaded(app, key);
    await runNext(app);
    for (const worker_id of ["w1", "w1", "w2"]) await nextTask(app, undefined, { worker_id });
    const { body } = await app.as({ admin: app.admin }).listWorkers();
    const jobs = Object.fromEntries(body.map((each) => [each.worker_id, each.jobs.map(({ id }) => id)]));
    expect(jobs).toEqual({ w1: [made.job.id], w2: [made.job.id] });
  });
});
