import { beforeEach, describe, expect, test } from "vitest";
import { type TestApp, testApp } from "#test/support/app.ts";
import { callback, next, putArtifacts, readyAsset, uploaded } from "#test/support/flow.ts";

let app: TestApp;
let key: string;
beforeEach(async () => {
  app = await testApp({ lease_seconds: 60, max_attempts: 3 });
  key = await app.key((await app.tenant()).id);
});
const types = async () => (await app.newEvents()).map((event) => event.type);
const asset = async (id: number) => (await app.as(key).getAsset(id)).body;

describe("a claim", () => {
  test("answers 204 for an empty queue and the whole contract for a job", async () => {
    expect((await next(app)).status).toBe(204);
    const made = await uploaded(app, key, { content_type: "video/mp4" });
    await app.newEvents();
    const { status, body } = await next(app);
    expect(status).toBe(200);
    expect(body).toMatchObject({
      schema_version: 1,
      job: { id: made.job.id, asset_id: made.asset.id, attempt: 1, profile: "default" },
      lease: { heartbeat_interval_seconds: 15 },
      source: { method: "GET", bytes: 18, content_type: "video/mp4", local_path: null },
      artifacts: { local_path: null },
      encoding_spec: { version: 1, container: "cmaf" },
    });
    expect(body.outputs.manifest_path).toBe(`${body.outputs.prefix}master.m3u8`);
    expect(body.outputs.prefix).toMatch(new RegExp(`^tenants/${made.asset.tenant_id}/assets/${made.asset.id}/`));
    expect(Buffer.from(body.lease.token, "base64url")).toHaveLength(32);
    expect(await app.newEvents()).toMatchObject([
      {
        type: "video.job.started",
        data: { job_id: made.job.id, asset_id: String(made.asset.id), attempt: 1, worker_id: "w1" },
      },
    ]);
    expect((await app.call("GET", body.source.url)).text).toBe("not really a video");
    expect((await next(app)).status).toBe(204);
  });

  test("needs an Idempotency-Key of 1 to 255 bytes, and a repeat gets the same valid lease", async () => {
    const without = await app.as({ worker: app.worker }).claimJob({});
    expect([without.status, without.error.code]).toEqual([422, "parameter_missing"]);
    const long = await next(app, "x".repeat(256));
    expect([long.status, long.body.code]).toEqual([422, "validation_failed"]);
    await uploaded(app, key);
    await uploaded(app, key);
    app.stopClock();
    const first = await next(app, "mine");
    const again = await next(app, "mine");
    expect(again.body).toEqual(first.body);
    app.advance(61_000);
    const late = await next(app, "mine");
    expect([late.status, late.body.code]).toEqual([409, "stale_lease"]);
  });

  test("with the key of an earlier attempt is refused, however that began", async () => {
    await uploaded(app, key);
    const planned = { worker_id: "w1", capabilities: { tasks: 3 } };
    for (const [name, body] of [
      ["first", planned],
      ["second", undefined],
      ["third", planned],
    ] as const)
      await callback(app, (await next(app, name, body)).body, "release");
    await next(app, "fourth");
    for (const name of ["first", "second", "third"])
      expect((await next(app, name)).body.code, name).toBe("stale_lease");
  });

  test("leases each of many jobs once, the oldest first", async () => {
    const made = [];
    for (let i = 0; i < 8; i++) made.push((await uploaded(app, key)).job.id);
    const claimed = await Promise.all(made.map(() => next(app)));
    expect(claimed.map(({ body }) => body.job.id).sort()).toEqual(made);
    expect((await next(app)).status).toBe(204);
  });

  test("waits for a job when requested", async () => {
    const waiting = next(app, "patient", { wait_seconds: 20 });
    const made = await uploaded(app, key);
    expect((await waiting).body.job.id).toBe(made.job.id);
  });

  test("returns local paths only to a worker that proved to share the disk", async () => {
    await uploaded(app, key);
    const proved = await next(app, "local", { capabilities: { local_proof: app.opened.app.localProof } });
    expect(proved.body.source.local_path).toMatch(/^\//);
    expect(proved.body.artifacts.local_path).toMatch(/^\//);
    await uploaded(app, key);
    expect((await next(app, "guess", { capabilities: { local_proof: "guessed" } })).body.source.local_path).toBeNull();
  });
});

describe("a lease", () => {
  test("is renewed by heartbeats, which show progress", async () => {
    const made = await uploaded(app, key);
    const { body: contract } = await next(app);
    app.advance(50_000);
    const beat = await callback(app, contract, "heartbeat", { progress: 41.7, stage: "encoding", worker_id: "w1" });
    expect(beat.body).toMatchObject({ status: "running", cancel_requested: false });
    app.advance(50_000);
    await app.runTask("recover-leases");
    expect(await asset(made.asset.id)).toMatchObject({
      progress: 42,
      stage: "encoding",
      playback_status: "processing",
    });
    for (const progress of [-1, 101, "half"])
      expect((await callback(app, contract, "heartbeat", { progress })).status).toBe(422);
  });

  test("that expired counts as an attempt; the job is queued again, and the old token is invalid", async () => {
    const made = await uploaded(app, key);
    const { body: old } = await next(app);
    await app.newEvents();
    app.advance(61_000);
    for (const name of ["heartbeat", "complete", "fail", "release"] as const) {
      const answer = await callback(app, old, name);
      expect([answer.status, answer.body.code], name).toEqual([409, "stale_lease"]);
    }
    await app.runTask("recover-leases");
    expect(await types()).toEqual(["video.job.failed", "video.job.queued"]);
    const { body: fresh } = await next(app);
    expect(fresh.job).toMatchObject({ id: made.job.id, attempt: 2 });
    expect(fresh.outputs.prefix).not.toBe(old.outputs.prefix);
    expect((await callback(app, old, "heartbeat")).status).toBe(409);
    expect((await callback(app, fresh, "heartbeat")).status).toBe(200);
  });

  test("of another job is refused, and an unknown job is 404", async () => {
    await uploaded(app, key);
    await uploaded(app, key);
    const one = (await next(app)).body;
    const two = (await next(app)).body;
    const crossed = await app.call("POST", two.callbacks.heartbeat_url, {
      worker: app.worker,
      lease: one.lease.token,
      body: {},
    });
    expect([crossed.status, crossed.body.code]).toEqual([409, "stale_lease"]);
    const unknown = await app.as({ worker: app.worker, lease: one.lease.token }).renewJobLease(999, {});
    expect([unknown.status, unknown.error.code]).toEqual([404, "not_found"]);
  });

  test("that is released does not count as an attempt", async () => {
    await uploaded(app, key);
    const { body: contract } = await next(app);
    await app.newEvents();
    expect((await callback(app, contract, "release")).body).toMatchObject({ status: "queued", attempt: 0 });
    expect(await types()).toEqual(["video.job.queued"]);
    expect((await next(app)).body.job.attempt).toBe(1);
    expect((await callback(app, contract, "release")).status).toBe(409);
  });
});

describe("a failure", () => {
  test("is retried until no attempt is left, then the asset is errored, once", async () => {
    const made = await uploaded(app, key);
    for (const attempt of [1, 2, 3]) {
      app.advance(600_000);
      const { body: contract } = await next(app);
      expect(contract.job.attempt).toBe(attempt);
      await app.newEvents();
      const failed = await callback(app, contract, "fail", {
        code: "encode_failed",
        message: "It broke.",
        log_tail: "…",
      });
      expect(failed.body.status).toBe(attempt < 3 ? "queued" : "failed");
      const events = await app.newEvents();
      expect(events.map((event) => event.type)).toEqual(
        attempt < 3 ? ["video.job.failed", "video.job.queued"] : ["video.job.failed", "video.asset.errored"],
      );
      expect(events[0]?.data).toMatchObject({
        attempt,
        error_code: "encode_failed",
        error_message: "It broke.",
        will_retry: attempt < 3,
      });
    }
    expect(await asset(made.asset.id)).toMatchObject({
      playback_status: "errored",
      error: { code: "encode_failed", message: "It broke." },
    });
    expect((await next(app)).status).toBe(204);
  });

  test("of the input is final immediately", async () => {
    const made = await uploaded(app, key);
    const { body: contract } = await next(app);
    expect(
      (await callback(app, contract, "fail", { code: "input_invalid", message: "No video.", retryable: false })).body
        .status,
    ).toBe("failed");
    expect((await asset(made.asset.id)).playback_status).toBe("errored");
  });
});

describe("completion", () => {
  test("publishes: the asset is ready, with one event, and a repeat changes nothing", async () => {
    const made = await uploaded(app, key);
    const { body: contract } = await next(app);
    const paths = await putArtifacts(app, contract);
    await app.newEvents();
    const body = { ...paths, media: { duration_seconds: 12.5, width: 640, height: 360, frame_rate: 29.97 } };
    const done = await callback(app, contract, "complete", body);
    expect(done.body).toMatchObject({ id: made.job.id, status: "completed", attempt: 1 });
    const events = await app.newEvents();
    expect(events.map((event) => event.type)).toEqual(["video.asset.ready"]);
    expect(events[0]?.data).toMatchObject({ asset_id: String(made.asset.id), title: "clip", playback_status: "ready" });
    expect(events[0]?.data.playback_url).toMatch(/^http:\/\/vodbox\.test\/media\/vid_\w+\/master\.m3u8$/);
    expect(await asset(made.asset.id)).toMatchObject({
      playback_status: "ready",
      duration_seconds: 12.5,
      width: 640,
      manifest_path: paths.manifest_path,
      progress: 100,
    });

    expect((await callback(app, contract, "complete", body)).body).toEqual(done.body);
    expect(await app.newEvents()).toEqual([]);
    expect(
      (await callback(app, contract, "complete", { ...body, thumbnail_path: `${contract.outputs.prefix}other.jpg` }))
        .status,
    ).toBe(409);
  });

  test("requires every artifact, in storage, under the attempt's own prefix", async () => {
    await uploaded(app, key);
    const { body: contract } = await next(app);
    const paths = await putArtifacts(app, contract);
    const wrong: Record<string, unknown>[] = [
      { manifest_path: undefined },
      { dash_manifest_path: undefined },
      { thumbnail_path: undefined },
      { manifest_path: `${contract.outputs.prefix}nothing.m3u8` },
      { manifest_path: contract.outputs.prefix },
      { manifest_path: "tenants/2/assets/1/1-1/master.m3u8" },
      { manifest_path: `${contract.outputs.prefix}../../../../../../etc/passwd` },
      { subtitle_paths: { en: `${contract.outputs.prefix}nothing.vtt` } },
      { storyboard_path: "tenants/2/assets/1/1-1/storyboard.vtt" },
      { mp4_path: `${contract.outputs.prefix}../video.mp4` },
    ];
    for (const change of wrong) {
      const answer = await callback(app, contract, "complete", { ...paths, ...change });
      expect([answer.status, answer.body.code], JSON.stringify(change)).toEqual([422, "invalid_transcoding_result"]);
    }
    expect((await callback(app, contract, "complete", paths)).status).toBe(200);
  });

  test("does not require the storyboard and the MP4 file", async () => {
    const made = await uploaded(app, key);
    const { body: contract } = await next(app);
    const paths = await putArtifacts(app, contract);
    const { prefix } = contract.outputs;
    const absent = { storyboard_path: `${prefix}none.vtt`, mp4_path: `${prefix}none.mp4` };
    expect((await callback(app, contract, "complete", { ...paths, ...absent })).status).toBe(200);
    expect(await asset(made.asset.id)).toMatchObject({ playback_status: "ready", storyboard_path: null });
  });

  test("without metadata reads it from the manifest", async () => {
    const made = await uploaded(app, key);
    const { body: contract } = await next(app);
    const { prefix } = contract.outputs;
    const master =
      '#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=900000,CODECS="avc1.64001e,mp4a.40.2",RESOLUTION=640x360,VIDEO-RANGE=HLG,FRAME-RATE=25.000\nlow/playlist.m3u8\n';
    const playlist = "#EXTM3U\n#EXTINF:4.0,\n1.m4s\n#EXTINF:2.5,\n2.m4s\n#EXT-X-ENDLIST\n";
    const paths = await putArtifacts(app, contract, {
      [contract.outputs.manifest_path]: master,
      [`${prefix}low/playlist.m3u8`]: playlist,
    });
    expect((await callback(app, contract, "complete", paths)).status).toBe(200);
    expect(await asset(made.asset.id)).toMatchObject({
      duration_seconds: 6.5,
      width: 640,
      height: 360,
      frame_rate: 25,
      renditions: [{ name: "360p", bandwidth: 900_000, hdr: "hlg" }],
    });
  });

  test("counts storage and transcoded duration", async () => {
    const { asset: made } = await readyAsset(app, key);
    const [tenant] = (await app.as(key).listTenants()).body;
    const stored = (await asset(made.id)).storage_bytes;
    expect(stored).toBeGreaterThan(18);
    expect(tenant).toMatchObject({ storage_bytes: stored, transcoding_minutes: 1 });
  });
});

test("presigned URLs are limited to the attempt's prefix", async () => {
  await uploaded(app, key);
  const { body: contract } = await next(app);
  for (const path of [
    "tenants/1/sources/x.mp4",
    `${contract.outputs.prefix}../x`,
    `${contract.outputs.prefix}`,
    "/etc/passwd",
  ]) {
    const answer = await app.call("POST", contract.artifacts.sign_url, {
      worker: app.worker,
      lease: contract.lease.token,
      body: { paths: [path] },
    });
    expect([answer.status, answer.body.code], path).toEqual([422, "validation_failed"]);
  }
});

test("artifacts of a failed attempt are deleted, once its worker must have noticed", async () => {
  await uploaded(app, key);
  const { body: lost } = await next(app);
  await putArtifacts(app, lost);
  const left = async () => (await app.opened.app.objects?.list(lost.outputs.prefix))?.objects.length;
  expect(await left()).toBe(7);
  app.advance(61_000);
  await app.runTask("recover-leases");
  await app.runTask("sweep-attempts");
  expect(await left()).toBe(7);
  const { body: good } = await next(app);
  const paths = await putArtifacts(app, good);
  expect((await callback(app, good, "complete", paths)).status).toBe(200);
  app.advance(120_000);
  await app.runTask("sweep-attempts");
  expect(await left()).toBe(0);
  expect((await app.opened.app.objects?.list(good.outputs.prefix))?.objects).toHaveLength(7);
});
