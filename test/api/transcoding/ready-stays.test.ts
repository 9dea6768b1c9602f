import { beforeEach, describe, expect, test } from "vitest";
import { type TestApp, testApp } from "#test/support/app.ts";
import { leased, tiny, tinyAsset } from "#test/support/batches.ts";
import { publishedEarly } from "#test/support/early.ts";
import { expectError } from "#test/support/error.ts";
import { callback, next, putArtifacts, readyAsset, uploaded } from "#test/support/flow.ts";

const LEASE_SECONDS = 60;
const jobs = "/api/v1/transcoding_jobs";
let app: TestApp;
let key: string;
beforeEach(async () => {
  app = await testApp({
    lease_seconds: LEASE_SECONDS,
    max_attempts: 2,
    job_timeout_seconds: 3600,
    job_stall_seconds: 600,
  });
  key = await app.key((await app.tenant()).id);
});

const asset = async (id: number) => (await app.as(key).getAsset(id)).body;
const order = (verb: "cancel" | "retry", id: number) => app.call("POST", `${jobs}/${id}/${verb}`, { admin: app.admin });
const types = async () => (await app.newEvents()).map((event) => event.type);
const hopeless = { code: "input_invalid", message: "No video.", retryable: false };
const passing = { code: "encode_failed", message: "It broke.", retryable: true };

/** Everything that a viewer's player fetches, down to a segment. */
async function plays(id: number) {
  const { status, body } = await app.as(key).getPlayback(id);
  expect(status).toBe(200);
  const master = await app.call("GET", body.hls_url);
  expect(master.status).toBe(200);
  const playlist = /^[^#\n]+$/m.exec(master.text)?.[0] as string;
  const list = await app.call("GET", new URL(playlist, body.hls_url).href);
  expect(list.status).toBe(200);
  const segment = /^[^#\n]+$/m.exec(list.text)?.[0] as string;
  const bytes = await app.call("GET", new URL(segment, new URL(playlist, body.hls_url)).href);
  expect([bytes.status, bytes.text]).toEqual([200, "segment"]);
  const data = await app.call("GET", new URL(body.embed_url).pathname + new URL(body.embed_url).search);
  expect(data.status).toBe(200);
}

type Playing = { id: number; job: number };

/** Registered with media in storage: POST /assets queues a job anyway. */
async function registered(): Promise<Playing> {
  const { asset: made } = await readyAsset(app, key);
  const { manifest_path, source_key } = await asset(made.id);
  const video_asset = {
    title: "x",
    input_status: "uploaded",
    playback_status: "ready",
    manifest_path,
    source_key,
    source_bytes: 1,
    storage_bytes: 1,
    duration_seconds: 4,
  };
  const again = await app.as(key).createAsset({ tenant_id: made.tenant_id, video_asset });
  expect(again.status).toBe(201);
  return { id: again.body.asset.id, job: again.body.transcoding_job.id };
}

/** Published early, then failed for good, then queued again. */
async function retriedAfterEarly(): Promise<Playing> {
  const { id, job, head } = await publishedEarly(app, key, { isHeadLeft: true });
  // A fault of the source of a part ends the job.
  await callback(app, head, "fail", { code: "source_corrupt", message: "Another file.", retryable: false });
  expect(await asset(id)).toMatchObject({ playback_status: "ready", error: { code: "source_corrupt" } });
  expect((await order("retry", job)).status).toBe(200);
  expect(await asset(id)).toMatchObject({ playback_status: "ready", error: null });
  return { id, job };
}

/** Complete, and re-encoded because its thumbnail was missing from storage. */
async function madeAgain(): Promise<Playing> {
  const { asset: made, job, contract } = await readyAsset(app, key);
  await app.opened.app.objects?.delete(contract.outputs.thumbnail_path);
  const { checkup } = await import("#test/support/doctor.ts");
  await checkup(app, { fix: true });
  return { id: made.id, job: job.id };
}

const KINDS = { registered, "retried after it was published early": retriedAfterEarly, "made again": madeAgain };

const ENDS: Record<string, { code: string; events: string[]; end(job: number): Promise<void> }> = {
  "fails for good": {
    code: "input_invalid",
    events: ["video.job.started", "video.job.failed"],
    async end() {
      await callback(app, (await next(app)).body, "fail", hopeless);
    },
  },
  "cannot fetch its source": {
    code: "source_missing",
    events: ["video.job.started", "video.job.failed"],
    async end() {
      const fault = { code: "source_missing", message: "The source is gone.", retryable: false };
      await callback(app, (await next(app)).body, "fail", fault);
    },
  },
  "uses up its attempts": {
    code: "encode_failed",
    events: ["video.job.started", "video.job.failed", "video.job.queued", "video.job.started", "video.job.failed"],
    async end() {
      for (const _ of [1, 2]) {
        await callback(app, (await next(app)).body, "fail", passing);
        app.advance(600_000);
      }
    },
  },
  "loses its lease until none is left": {
    code: "lease_expired",
    events: ["video.job.started", "video.job.failed", "video.job.queued", "video.job.started", "video.job.failed"],
    async end() {
      for (const _ of [1, 2]) {
        await putArtifacts(app, (await next(app)).body);
        app.advance((LEASE_SECONDS + 1) * 1000);
        await app.runTask("recover-leases");
      }
    },
  },
  "takes longer than any may": {
    code: "time_limit_exceeded",
    events: ["video.job.started", "video.job.failed"],
    async end() {
      const { body: contract } = await next(app);
      for (let at = 0; at < 3600; at += 50) {
        app.advance(50_000);
        await callback(app, contract, "heartbeat", { progress: at / 40 });
      }
      await app.runTask("recover-leases");
    },
  },
  "is canceled while it is queued": {
    code: "canceled",
    events: [],
    end: async (job) => void (await order("cancel", job)),
  },
  "is canceled while it runs": {
    code: "canceled",
    events: ["video.job.started"],
    async end(job) {
      await putArtifacts(app, (await next(app)).body);
      await order("cancel", job);
    },
  },
  "fails, is retried by the operator, and fails again": {
    code: "input_invalid",
    events: ["video.job.started", "video.job.failed", "video.job.queued", "video.job.started", "video.job.failed"],
    async end(job) {
      await callback(app, (await next(app)).body, "fail", hopeless);
      await order("retry", job);
      await callback(app, (await next(app)).body, "fail", hopeless);
    },
  },
};

describe.each(Object.entries(KINDS))("an asset that plays, %s,", (_, make) => {
  test.each(Object.entries(ENDS))("stays playable when its job %s", async (_, { code, events, end }) => {
    const { id, job } = await make();
    const before = await asset(id);
    await app.newEvents();
    await end(job);
    expect(await asset(id)).toMatchObject({
      playback_status: "ready",
      progress: 100,
      stage: null,
      error: { code, message: expect.any(String) },
      manifest_path: before.manifest_path,
      ready_at: before.ready_at,
    });
    expect(await types()).toEqual(events);
    await plays(id);
    // Sweeps do not delete what it plays.
    app.advance(10 * 600_000);
    for (const name of ["recover-leases", "sweep-attempts", "sweep-objects"]) await app.runTask(name);
    await plays(id);
    expect(await types()).toEqual([]);

    // Its tenant may retry; that clears the error.
    const retried = await app.as(key).retryAsset(id);
    expect([retried.status, retried.body.asset?.playback_status, retried.body.asset?.error]).toEqual([
      200,
      "ready",
      null,
    ]);
    const { body: contract } = await next(app);
    const media = { duration_seconds: 4, width: 640, height: 360, frame_rate: 30, renditions: [] };
    const done = await callback(app, contract, "complete", { ...(await putArtifacts(app, contract)), media });
    expect(done.status).toBe(200);
    expect(await asset(id)).toMatchObject({ playback_status: "ready", error: null });
    await plays(id);
    expectError(await app.as(key).retryAsset(id), 409, "asset_conflict");
  });
});

test("ready is sent once for an asset that was published early, however often its job is retried", async () => {
  await app.newEvents();
  const { id } = await retriedAfterEarly();
  const { body: contract } = await next(app);
  await callback(app, contract, "complete", { ...(await putArtifacts(app, contract)), media: { duration_seconds: 4 } });
  expect((await asset(id)).playback_status).toBe("ready");
  expect((await types()).filter((type) => type.startsWith("video.asset."))).toEqual(["video.asset.ready"]);
});

test("an asset of a batch stays playable when its re-encode fails", async () => {
  const batch = await leased(app, key);
  await batch.putAll(tiny());
  const committed = await batch.commit({ assets: [tinyAsset()] });
  const [{ id }] = committed.body.assets;
  expect(await asset(id)).toMatchObject({ playback_status: "ready" });
  await app.newEvents();
  expectError(await app.as(key).retryAsset(id), 409, "asset_conflict");
  expect((await next(app)).status).toBe(204);
});

test("one that never played is errored as before", async () => {
  const made = await uploaded(app, key);
  await app.newEvents();
  await callback(app, (await next(app)).body, "fail", hopeless);
  expect(await asset(made.asset.id)).toMatchObject({ playback_status: "errored", error: { code: "input_invalid" } });
  expect(await types()).toEqual(["video.job.started", "video.job.failed", "video.asset.errored"]);
});
