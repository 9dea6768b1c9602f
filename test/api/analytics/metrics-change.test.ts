import { expect, test } from "vitest";
import { type TestApp, testApp } from "#test/support/app.ts";
import { until } from "#test/support/descendants.ts";
import { callback, next, putArtifacts, readyAsset, uploaded } from "#test/support/flow.ts";
import { STRIPE_KEY } from "#test/support/payment-services.ts";
import { receiver, status } from "#test/support/receiver.ts";
import { subtitled } from "#test/support/subtitles.ts";

/** Samples by name and labels, as in the text. */
async function scrape({ call, admin }: TestApp): Promise<(sample: string) => number> {
  const { text } = await call("GET", "/metrics", { admin });
  const samples = new Map(
    [...text.matchAll(/^vodbox_(\S+?(?:\{[^}]*\})?) (\S+)$/gm)].map(([, name, value]) => [name, Number(value)]),
  );
  return (sample) => samples.get(sample) ?? Number.NaN;
}

/** How much `samples` changed during `work`. */
async function moved(app: TestApp, samples: readonly string[], work: () => Promise<unknown>): Promise<number[]> {
  const before = await scrape(app);
  await work();
  const after = await scrape(app);
  return samples.map((sample) => after(sample) - before(sample));
}

test("queue, leases, uploads, storage, egress and garbage follow the activity", async () => {
  const app = await testApp();
  const tenant = await app.tenant();
  const key = await app.key(tenant.id);
  const jobs = (state: string) => `jobs{state="${state}"}`;

  expect(await moved(app, [jobs("queued"), "uploads_open"], () => uploaded(app, key))).toEqual([1, 0]);
  const initiate = () => app.as(key).initiateUpload({ filename: "a", bytes_expected: 3 });
  expect(await moved(app, ["uploads_open"], initiate)).toEqual([1]);
  const age = 'jobs_oldest_age_seconds{state="queued"}';
  expect((await moved(app, [age], async () => app.advance(90_000)))[0]).toBeGreaterThanOrEqual(89);
  let contract: any;
  const claim = async () => {
    contract = (await next(app)).body;
  };
  expect(await moved(app, [jobs("queued"), jobs("running"), "leases"], claim)).toEqual([-1, 1, 1]);
  const running = 'jobs_oldest_age_seconds{state="running"}';
  const late = await moved(app, ["leases", "leases_expired", running], async () => app.advance(600_000));
  expect(late.slice(0, 2)).toEqual([-1, 1]);
  expect(late[2]).toBeGreaterThanOrEqual(599);
  expect(await moved(app, ["leases_expired", jobs("running")], () => app.runTask("recover-leases"))).toEqual([-1, -1]);
  await claim();
  const media = { duration_seconds: 4, width: 640, height: 360, frame_rate: 30, renditions: [] };
  const complete = async () => {
    const done = await callback(app, contract, "complete", { ...(await putArtifacts(app, contract)), media });
    expect(done.status, done.text).toBe(200);
  };
  const made = await moved(app, [jobs("completed"), "transcoded_seconds_total", "stored_bytes", "leases"], complete);
  expect([made[0], made[1], made[3]]).toEqual([1, 4, -1]);
  expect(made[2]).toBeGreaterThan(100);
  expect((await scrape(app))("transcode_speed_ratio")).toBeGreaterThan(0);

  const watch = async () => {
    const { body } = await app.as(key).getPlayback(contract.job.asset_id);
    expect((await app.call("GET", body.hls_url)).status).toBe(200);
    await app.runTask("count-egress");
  };
  expect((await moved(app, ["egress_bytes_total"], watch))[0]).toBeGreaterThan(0);
  const subtitle = await subtitled(app, key, contract.job.asset_id);
  const drop = () => app.as(key).deleteSubtitle(contract.job.asset_id, subtitle.id);
  expect(await moved(app, ["unwanted_objects"], drop)).toEqual([1]);
  const hold = () => app.as({ admin: app.admin }).createRemovalHold();
  expect(await moved(app, ["removal_held"], hold)).toEqual([1]);
  expect(await moved(app, ["tenants"], () => app.tenant())).toEqual([1]);
  const count = 'http_request_duration_seconds_count{route="/api/v1/assets/:id",method="GET",status="4xx"}';
  await app.as(key).getAsset(998);
  expect(await moved(app, [count], () => app.as(key).getAsset(999))).toEqual([1]);
  const process = ["cpu_seconds_total", 'memory_bytes{kind="rss"}', "disk_free_bytes", "process_start_time_seconds"];
  const now = await scrape(app);
  for (const name of process) expect(now(name), name).toBeGreaterThan(0);
  // Alternating, because a scrape begins a new interval with the next measured iteration.
  let hasPublisherElsewhere = false;
  const told = async () => {
    hasPublisherElsewhere = !hasPublisherElsewhere;
    if (!hasPublisherElsewhere) return (await scrape(app))('event_loop_delay_seconds{quantile="1"}') > 0.2;
    for (const end = performance.now() + 300; performance.now() < end; );
    return false;
  };
  await until("the event loop was blocked for that long", told);
});

test("deliveries are counted by result, with the pending ones and their lag", async () => {
  const hook = await receiver();
  const app = await testApp({ webhook_allow_cidrs: "127.0.0.0/8", webhook_retry_seconds: "5,5,5,5,5" });
  const key = await app.key((await app.tenant()).id);
  const made = await app.as(key).createWebhook({ url: hook.url, event_types: [] });
  expect(made.status, made.text).toBe(201);
  await uploaded(app, key);
  const pending = (await scrape(app))("webhook_deliveries_pending");
  expect(pending).toBeGreaterThan(0);
  expect((await moved(app, ["webhook_lag_seconds"], async () => app.advance(60_000)))[0]).toBeGreaterThanOrEqual(59);
  hook.behave(status(500));
  await app.runTask("deliver-webhooks");
  expect((await scrape(app))('webhook_attempts_total{outcome="retried"}')).toBe(pending);
  hook.behave(() => {});
  app.advance(60_000);
  await app.runTask("deliver-webhooks");
  const told = await scrape(app);
  expect(told('webhook_attempts_total{outcome="delivered"}')).toBe(pending);
  expect(told("webhook_deliveries_pending")).toBe(0);
});

const NOWHERE = "http://127.0.0.1:9";
const service = (name: string) => `service_errors_total{service="${name}"}`;

test("failures of external services are counted: translation, transcription, payments", async () => {
  const app = await testApp({
    translate: "libretranslate",
    translate_url: NOWHERE,
    translate_timeout_seconds: 1,
    payments: "stripe",
    stripe_key: STRIPE_KEY,
    stripe_webhook_secret: "whsec_of_the_tests",
    stripe_url: NOWHERE,
  });
  const key = await app.key((await app.tenant()).id);
  const { asset } = await readyAsset(app, key);
  const { id } = await subtitled(app, key, asset.id);
  const body = { target_language: "de" };
  const translate = () => app.as(key).translateSubtitle(asset.id, id, body);
  const all = ["translation", "transcription", "payments"].map(service);
  expect(await moved(app, all, async () => expect((await translate()).status).toBe(502))).toEqual([1, 0, 0]);
  const order = async () => {
    const headers = { "idempotency-key": "o1" };
    const answer = await app.as({ key, headers }).createOrder({ plan_name: "starter" });
    expect(answer.status).toBe(502);
  };
  expect(await moved(app, all, order)).toEqual([0, 0, 1]);
  await uploaded(app, key, { captions: ["en"] });
  const { body: contract } = await next(app);
  const paths = await putArtifacts(app, contract);
  const media = { duration_seconds: 4, width: 640, height: 360, frame_rate: 30, renditions: [] };
  const complete = async () => {
    const told = { ...paths, media, subtitle_paths: {}, caption_errors: { en: "caption_failed" } };
    const done = await callback(app, contract, "complete", told);
    expect(done.status, done.text).toBe(200);
  };
  expect(await moved(app, all, complete)).toEqual([0, 1, 0]);
});

test("failed storage operations are counted by reason; errors of the caller are not", async () => {
  const full = await testApp({ min_free_bytes: Number.MAX_SAFE_INTEGER });
  const key = await full.key((await full.tenant()).id);
  const all = ["full", "unavailable", "failed"].map((reason) => `storage_errors_total{reason="${reason}"}`);
  const upload = async () => {
    const { body } = await full.as(key).initiateUpload({ filename: "a.mp4", bytes_expected: 3 });
    const put = await full.call("PUT", body.upload_url, { raw: "abc", headers: body.upload_headers });
    expect(put.status).toBe(507);
  };
  expect(await moved(full, all, upload)).toEqual([1, 0, 0]);

  const app = await testApp();
  const { id } = await app.tenant();
  const other = await app.key(id);
  const tooLarge = async () => {
    const initiated = await app.as(other).initiateUpload({ filename: "a.mp4", bytes_expected: 3 });
    const put = await app.call("PUT", initiated.body.upload_url, { raw: "a".repeat(10) });
    expect(put.status).toBe(413);
  };
  expect(await moved(app, all, tooLarge)).toEqual([0, 0, 0]);
});
