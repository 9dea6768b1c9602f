import { beforeEach, describe, expect, test } from "vitest";
import { type TestApp, testApp } from "../support/app.ts";
import { expectError } from "../support/error.ts";
import { callback, next, putArtifacts } from "../support/flow.ts";
import { leased, MEDIA } from "./lease.ts";

/** What a worker sends without its lease: too late, for another job, too large or without end. */

let app: TestApp;
let key: string;
beforeEach(async () => {
  app = await testApp();
  key = await app.key((await app.tenant()).id);
});

const jobNow = async (id: number) => (await app.as({ admin: app.admin }).getJob(id)).body;
const rotate = () => app.as({ admin: app.admin }).rotateToken("worker", {});

/** Each callback of a job, with a body that is right within the lease. */
const CALLS: Record<string, (contract: any, paths: object) => [url: string, body: unknown]> = {
  heartbeat: ({ callbacks }) => [callbacks.heartbeat_url, { progress: 50 }],
  complete: ({ callbacks }, paths) => [callbacks.complete_url, { ...paths, media: MEDIA }],
  fail: ({ callbacks }) => [callbacks.fail_url, { code: "encode_failed", message: "no", retryable: false }],
  release: ({ callbacks }) => [callbacks.release_url, {}],
  "a request for URLs": ({ artifacts, outputs }) => [artifacts.sign_url, { paths: [`${outputs.prefix}a.m4s`] }],
};
const rows = Object.keys(CALLS);

const ENDS: Record<string, (contract: any) => Promise<unknown>> = {
  failed: (contract) => callback(app, contract, "fail", { code: "encode_failed", message: "no", retryable: false }),
  released: (contract) => callback(app, contract, "release", {}),
  expired: async () => {
    app.advance(60 * 60_000);
    await app.runTask("recover-leases");
  },
  "of another worker now": async () => {
    app.advance(60 * 60_000);
    await app.runTask("recover-leases");
    expect((await next(app, undefined, { worker_id: "w2" })).status).toBe(200);
  },
};

describe.each(Object.keys(ENDS))("after the lease: %s", (end) => {
  test.each(rows)("%s changes nothing", async (call) => {
    const { contract, job, asset } = await leased(app, key);
    const paths = await putArtifacts(app, contract);
    await (ENDS[end] as (contract: any) => Promise<unknown>)(contract);
    const before = await jobNow(job.id);
    const [url, body] = (CALLS[call] as (typeof CALLS)[string])(contract, paths);
    const answer = await app.call("POST", url, { worker: app.worker, lease: contract.lease.token, body });
    expectError(answer, 409, "stale_lease", call);
    expect(await jobNow(job.id)).toEqual(before);
    const { body: shown } = await app.as(key).getAsset(asset.id);
    expect(shown.playback_status).not.toBe("ready");
  });
});

describe("without the token of workers", () => {
  test.each(rows)("%s after a rotation is refused", async (call) => {
    const { contract, job } = await leased(app, key);
    const paths = await putArtifacts(app, contract);
    const before = await jobNow(job.id);
    expect((await rotate()).status).toBe(200);
    const [url, body] = (CALLS[call] as (typeof CALLS)[string])(contract, paths);
    const answer = await app.call("POST", url, { worker: app.worker, lease: contract.lease.token, body });
    expect([401, 403]).toContain(answer.status);
    expect(await jobNow(job.id)).toEqual(before);
  });

  test.each(rows)("%s with the lease of another job is refused", async (call) => {
    const own = await leased(app, key);
    const other = await leased(app, await app.key((await app.tenant()).id));
    const paths = await putArtifacts(app, other.contract);
    const before = await jobNow(other.job.id);
    const [url, body] = (CALLS[call] as (typeof CALLS)[string])(other.contract, paths);
    const answer = await app.call("POST", url, { worker: app.worker, lease: own.contract.lease.token, body });
    expect([404, 409]).toContain(answer.status);
    expect(await jobNow(other.job.id)).toEqual(before);
  });

  /** What the token of workers is not for. */
  const FORBIDDEN: [method: string, path: string][] = [
    ["GET", "/api/v1/assets"],
    ["GET", "/api/v1/assets/1"],
    ["DELETE", "/api/v1/assets/1"],
    ["GET", "/api/v1/transcoding_jobs"],
    ["POST", "/api/v1/transcoding_jobs/1/cancel"],
    ["GET", "/api/v1/tenants"],
    ["GET", "/api/v1/admin/workers"],
    ["POST", "/api/v1/admin/tokens/worker/rotate"],
    ["GET", "/api/v1/webhooks"],
    ["GET", "/api/v1/api_keys"],
    ["POST", "/api/v1/uploads/initiate"],
  ];
  test.each(FORBIDDEN)("%s %s is not for workers", async (method, path) => {
    await leased(app, key);
    const body = method === "GET" ? undefined : {};
    expect([401, 403]).toContain((await app.call(method, path, { worker: app.worker, body })).status);
  });
});

describe("without end", () => {
  const beats: Record<string, (n: number) => object> = {
    "progress that rises and falls": (n) => ({ progress: n % 2 }),
    "progress that rises by less and less": (n) => ({ progress: 100 - 100 / (n + 1) }),
    "stages that alternate": (n) => ({ stage: `s${n % 2}` }),
    "known stages that alternate": (n) => ({ stage: n % 2 ? "encoding" : "publishing", progress: n % 100 }),
  };
  test.each(Object.entries(beats))("%s is no progress, and ends the attempt", async (_, beat) => {
    const { contract, job } = await leased(app, key);
    const DAY = 24 * 60;
    let minutes = 0;
    for (; minutes < DAY && (await jobNow(job.id)).status === "running"; minutes++) {
      await callback(app, contract, "heartbeat", beat(minutes));
      app.advance(60_000);
      if (minutes % 10 === 0) await app.runTask("recover-leases");
    }
    expect(minutes).toBeLessThan(DAY);
    const { status, error } = await jobNow(job.id);
    expect([status, error?.code]).toEqual(["queued", "stalled"]);
  });

  test("a repeated result is one result", async () => {
    const { contract, asset } = await leased(app, key);
    const paths = await putArtifacts(app, contract);
    await app.newEvents();
    for (let n = 0; n < 20; n++)
      expect((await callback(app, contract, "complete", { ...paths, media: MEDIA })).status).toBe(200);
    const ready = (await app.newEvents()).filter(({ type }) => type === "video.asset.ready");
    expect(ready).toHaveLength(1);
    const other = await callback(app, contract, "complete", { ...paths, media: { ...MEDIA, duration_seconds: 5 } });
    expectError(other, 409, "stale_lease");
    expect((await app.as(key).getAsset(asset.id)).body.duration_seconds).toBe(4);
  });
});

describe("beyond the limits", () => {
  test("an artifact that announces more than its URL allows is refused", async () => {
    const { contract } = await leased(app, key);
    const paths = [`${contract.outputs.prefix}a.m4s`];
    const signed = await app.call("POST", contract.artifacts.sign_url, {
      worker: app.worker,
      lease: contract.lease.token,
      body: { paths },
    });
    const { url } = signed.body[0];
    const put = await app.call("PUT", url, { raw: "x", headers: { "content-length": String(2 ** 40) } });
    expect([400, 413]).toContain(put.status);
    // Nor may the worker raise the limit.
    for (const name of [...new URL(url).searchParams.keys()]) {
      const altered = new URL(url);
      altered.searchParams.set(name, "9".repeat(12));
      expect([name, (await app.call("PUT", altered.href, { raw: "x" })).status]).toEqual([name, 403]);
    }
  });

  test("more than 1000 paths, more than 100 languages and more than 80 warnings are refused", async () => {
    const { contract } = await leased(app, key);
    const paths = await putArtifacts(app, contract);
    const many = Array.from({ length: 1001 }, (_, n) => `${contract.outputs.prefix}${n}.m4s`);
    const sign = { worker: app.worker, lease: contract.lease.token, body: { paths: many } };
    expectError(await app.call("POST", contract.artifacts.sign_url, sign), 422, "validation_failed");
    const languages = Object.fromEntries(Array.from({ length: 101 }, (_, n) => [`l${n}`, "a"]));
    const warnings = Array.from({ length: 81 }, () => ({ code: "track_skipped", message: "no" }));
    const renditions = Array.from({ length: 101 }, (_, n) => ({
      name: `r${n}`,
      bandwidth: 1,
      codecs: "avc1",
      playlist_path: "low/playlist.m3u8",
    }));
    for (const fields of [
      { subtitle_paths: languages },
      { caption_errors: languages },
      { media: { ...MEDIA, warnings } },
      { media: { ...MEDIA, renditions } },
      { media: { ...MEDIA, audio_renditions: renditions } },
    ])
      expectError(await callback(app, contract, "complete", { ...paths, ...fields }), 422, "validation_failed");
  });
});
