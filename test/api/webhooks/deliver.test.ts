import Mux from "@mux/mux-node";
import { Webhook } from "standardwebhooks";
import Stripe from "stripe";
import { describe, expect, test } from "vitest";
import { testApp } from "#test/support/app.ts";
import { readyAsset, uploaded } from "#test/support/flow.ts";
import { type Receiver, receiver, status } from "#test/support/receiver.ts";
import { subtitled } from "#test/support/subtitles.ts";

const DUTY = "deliver-webhooks";
const MINUTE = 60_000;
const HOUR = 3_600_000;

/** A tenant with one endpoint at its own receiver. */
async function scene(fields: Record<string, unknown> = {}, flags: Record<string, unknown> = {}) {
  const app = await testApp({ webhook_allow_cidrs: "127.0.0.0/8", ...flags });
  const tenant = await app.tenant();
  const key = await app.key(tenant.id);
  const there = await receiver();
  const made = await app.as(key).createWebhook({ url: there.url, ...fields });
  expect(made.status).toBe(201);
  const path = `/api/v1/webhooks/${made.body.id}`;
  const deliveries = async () => (await app.as(key).listDeliveries(made.body.id)).body;
  const endpoint = async () => (await app.as(key).getWebhook(made.body.id)).body;
  /** A test event, delivered. */
  const tryIt = async () => {
    const answer = await app.as(key).testWebhook(made.body.id);
    expect(answer.status).toBe(202);
    await app.runTask(DUTY);
    return answer.body;
  };
  return { app, tenant, key, there, path, secret: made.body.secret as string, deliveries, endpoint, tryIt };
}

describe("an endpoint receives", () => {
  test("every event of the tenant, with its data, once", async () => {
    const { app, tenant, key, there, deliveries } = await scene();
    const { asset, upload, job } = await readyAsset(app, key, { title: "Holiday" });
    await subtitled(app, key, asset.id);
    await app.as(key).setTrack(asset.id, { kind: "chapter", cues: [] });
    await app.as(key).deleteAsset(asset.id);
    await app.runTask(DUTY);
    const about = { asset_id: String(asset.id), external_id: asset.external_id };
    const events = there.received.map(({ json }) => json).toSorted((a, b) => rank(a.event) - rank(b.event));
    expect(events.map(({ event, data }) => [event, data])).toMatchObject([
      ["video.upload.completed", { ...about, upload_id: upload.id, filename: "clip.mp4", bytes_received: 18 }],
      ["video.job.queued", { asset_id: about.asset_id, job_id: job.id, attempt: 0, worker_id: null }],
      ["video.job.started", { asset_id: about.asset_id, job_id: job.id, attempt: 1, worker_id: "w1" }],
      ["video.asset.ready", { ...about, title: "Holiday", playback_status: "ready" }],
      ["video.asset.deleted", { ...about, title: "Holiday" }],
      ["video.subtitle.ready", { asset_id: about.asset_id, language: "en", source: "upload" }],
      ["video.track.ready", { asset_id: about.asset_id, kind: "chapter", name: "default" }],
    ]);
    const ready = events.find(({ event }) => event === "video.asset.ready");
    expect(ready.data.playback_url).toBe(`http://vodbox.test/media/${asset.external_id}/master.m3u8`);
    for (const each of events) {
      expect(each).toEqual({
        id: expect.stringMatching(/^evt_[A-Za-z0-9]{24}$/),
        event: each.event,
        type: each.event,
        created_at: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
        tenant_id: tenant.id,
        data: expect.any(Object),
      });
    }
    expect(new Set(events.map(({ id }) => id)).size).toBe(events.length);
    expect((await deliveries()).map((each) => [each.status, each.attempts, each.response_status])).toEqual(
      events.map(() => ["delivered", 1, 200]),
    );
    const [first] = there.received;
    expect(first?.headers).toMatchObject({
      "content-type": "application/json",
      "svc-event": first?.json.event,
      "webhook-id": first?.json.id,
    });
  });

  test("failed uploads and encodes", async () => {
    const { app, key, there } = await scene({}, { max_attempts: "1" });
    const { asset } = await uploaded(app, key);
    const claim = await app.as({ worker: app.worker, headers: { "idempotency-key": "k" } }).claimJob({});
    await app.call("POST", claim.body.callbacks.fail_url, {
      worker: app.worker,
      lease: claim.body.lease.token,
      body: { code: "bad_input", message: "No video in it.", retryable: false },
    });
    await app.as(key).initiateUpload({ filename: "late.mp4", bytes_expected: 1 });
    app.advance(25 * HOUR);
    await app.runTask("expire-uploads");
    await app.runTask(DUTY);
    const told = Object.fromEntries(there.received.map(({ json }) => [json.event, json.data]));
    expect(told["video.job.failed"]).toMatchObject({ error_code: "bad_input", will_retry: false });
    expect(told["video.asset.errored"]).toMatchObject({
      asset_id: String(asset.id),
      playback_status: "errored",
      playback_url: null,
      error: { code: "bad_input", message: "No video in it." },
    });
    expect(told["video.upload.failed"]).toMatchObject({ filename: "late.mp4", bytes_received: null });
  });

  test("the subscribed events of its own tenant", async () => {
    const { app, key, there } = await scene({ event_types: ["video.job.queued", "video.asset.deleted"] });
    const stranger = await app.key((await app.tenant()).id);
    await uploaded(app, stranger);
    const { asset } = await uploaded(app, key);
    await app.as(key).deleteAsset(asset.id);
    await app.runTask(DUTY);
    expect(there.received.map(({ json }) => json.event).toSorted()).toEqual([
      "video.asset.deleted",
      "video.job.queued",
    ]);
  });
});

const ORDER = ["upload", "job.queued", "job.started", "asset.ready", "asset.deleted", "subtitle", "track"];
const rank = (event: string) => ORDER.findIndex((each) => event.includes(each));

describe("signatures", () => {
  /** The published libraries, unchanged. */
  const verifiers: Record<string, (body: string, headers: Record<string, string>, secret: string) => Promise<unknown>> =
    {
      stripe: async (body, headers, secret) =>
        new Stripe("sk_test_x").webhooks.constructEvent(body, String(headers["svc-signature"]), secret),
      mux: async (body, headers, secret) =>
        new Mux({ tokenId: "x", tokenSecret: "y" }).webhooks.unwrap(
          body,
          { "mux-signature": String(headers["svc-signature"]) },
          secret,
        ),
      standardwebhooks: async (body, headers, secret) => new Webhook(secret).verify(body, headers),
    };

  test.each(Object.entries(verifiers))(
    "%s accepts them, and neither a changed byte nor an old time",
    async (_, verify) => {
      const { app, there, secret, tryIt } = await scene();
      await tryIt();
      app.advance(-301_000);
      await tryIt();
      const [{ body, headers }, old] = there.received as [Receiver["received"][0], Receiver["received"][0]];
      const given = headers as Record<string, string>;
      await verify(body, given, secret);
      await expect(verify(body.replace("test", "tesT"), given, secret)).rejects.toThrow();
      await expect(verify(body, given, `whsec_${Buffer.alloc(32).toString("base64")}`)).rejects.toThrow();
      await expect(verify(old.body, old.headers as Record<string, string>, secret)).rejects.toThrow();
    },
  );

  test.each(Object.entries(verifiers))("%s accepts both secrets for a day after a rotation", async (_, verify) => {
    const { app, key, path, there, secret, tryIt } = await scene();
    const rotated = await app.call("POST", `${path}/rotate_secret`, { key });
    expect([rotated.status, rotated.body.secret]).toEqual([200, expect.stringMatching(/^whsec_[A-Za-z0-9+/]{43}=$/)]);
    await tryIt();
    const { body, headers } = there.received[0] as Receiver["received"][0];
    const given = headers as Record<string, string>;
    expect(given["svc-signature"]).toMatch(/^t=\d+,v1=[0-9a-f]{64},v1=[0-9a-f]{64}$/);
    for (const each of [secret, rotated.body.secret]) await verify(body, given, each);
    app.advance(24 * HOUR);
    await tryIt();
    expect(there.received[1]?.headers["svc-signature"]).toMatch(/^t=\d+,v1=[0-9a-f]{64}$/);
  });
});

describe("retries", () => {
  test("follow the schedule up to five times, with one id and new signatures", async () => {
    const { app, there, deliveries, tryIt, endpoint } = await scene();
    there.behave(status(503));
    await tryIt();
    const waits = [5, 300, 1800, 7200, 18_000];
    for (const [index, seconds] of waits.entries()) {
      const [row] = await deliveries();
      const waitMs = Date.parse(row.next_attempt_at) - Date.parse(row.last_attempt_at);
      expect(waitMs).toBeGreaterThanOrEqual(seconds * 900);
      expect(waitMs).toBeLessThanOrEqual(seconds * 1100 + 1);
      expect(row).toMatchObject({ status: "pending", attempts: index + 1, response_status: 503 });
      app.advance(seconds * 890);
      await app.runTask(DUTY);
      expect(there.received).toHaveLength(index + 1);
      app.advance(seconds * 220);
      await app.runTask(DUTY);
      expect(there.received).toHaveLength(index + 2);
    }
    const [row] = await deliveries();
    expect(row).toMatchObject({ status: "failed", attempts: 6, next_attempt_at: null });
    expect(row.error).toEqual({ code: "http_status", message: "The receiver responded with status 503." });
    expect(await endpoint()).toMatchObject({ active: true, failure_count: 6 });
    expect(new Set(there.received.map(({ body }) => body)).size).toBe(1);
    expect(new Set(there.received.map(({ headers }) => headers["webhook-id"])).size).toBe(1);
    expect(new Set(there.received.map(({ headers }) => headers["svc-signature"])).size).toBe(6);
    app.advance(48 * HOUR);
    await app.runTask(DUTY);
    expect(there.received).toHaveLength(6);
  });

  const OUTCOMES: [string, (there: Receiver) => unknown, Record<string, unknown>][] = [
    ["500", (there) => there.behave(status(500)), { status: "pending", response_status: 500 }],
    ["408", (there) => there.behave(status(408)), { status: "pending", response_status: 408 }],
    ["429", (there) => there.behave(status(429)), { status: "pending", response_status: 429 }],
    ["204", (there) => there.behave(status(204)), { status: "delivered", response_status: 204, error: null }],
    ["400", (there) => there.behave(status(400)), { status: "failed", response_status: 400, response_body: "no" }],
    ["404", (there) => there.behave(status(404)), { status: "failed", response_status: 404 }],
    [
      "a redirect",
      (there) => there.behave(status(302, { location: there.url })),
      { status: "failed", response_status: 302, attempts: 1 },
    ],
    [
      "no server",
      (there) => there.close(),
      { status: "pending", response_status: null, error: { code: "connection", message: expect.any(String) } },
    ],
    [
      "a connection that is cut",
      (there) => there.behave((_, response) => response.destroy()),
      { status: "pending", error: { code: "connection", message: expect.any(String) } },
    ],
    [
      "ten megabytes",
      (there) =>
        there.behave((_, response) => {
          response.end("x".repeat(10_000_000));
        }),
      { status: "delivered", response_body: "x".repeat(1024) },
    ],
  ];
  test.each(OUTCOMES)("or none: %s", async (_, arrange, expected) => {
    const { there, deliveries, tryIt } = await scene();
    await arrange(there);
    await tryIt();
    expect((await deliveries())[0]).toMatchObject({ attempts: 1, ...expected });
  });

  test.each([
    ["seconds", "60", 60],
    ["a date", "date", 3600],
    ["less than the schedule", "1", 5],
    ["more than a day", "999999", 86_400],
    ["nonsense", "soon", 5],
  ])("respect Retry-After: %s", async (_, given, seconds) => {
    const { there, deliveries, tryIt } = await scene();
    const value = given === "date" ? new Date(Date.now() + 3_600_000).toUTCString() : given;
    there.behave(status(503, { "retry-after": value }));
    await tryIt();
    const [row] = await deliveries();
    const wait = (Date.parse(row.next_attempt_at) - Date.parse(row.last_attempt_at)) / 1000;
    expect(wait).toBeGreaterThan(seconds * 0.9 - 2);
    expect(wait).toBeLessThan(seconds * 1.1 + 2);
  });

  test("are not sent to addresses that are no longer allowed", async () => {
    const { app, tenant, deliveries, endpoint, tryIt } = await scene();
    const { webhookEndpoints } = await import("#storage/db/schema.ts");
    await app.opened.app.write(async (tx) =>
      tx.update(webhookEndpoints).set({ url: "https://169.254.169.254/latest" }),
    );
    await tryIt();
    expect((await deliveries())[0]).toMatchObject({
      tenant_id: tenant.id,
      status: "failed",
      attempts: 1,
      next_attempt_at: null,
      error: { code: "blocked_destination", message: expect.any(String) },
    });
    expect(await endpoint()).toMatchObject({ active: true, failure_count: 1 });
  });
});

describe("an endpoint", () => {
  test("that answers 410 is disabled, and enabled again by its owner", async () => {
    const { app, key, path, there, deliveries, endpoint, tryIt } = await scene();
    there.behave(status(410));
    await tryIt();
    expect(await endpoint()).toMatchObject({ active: false, disabled_reason: "gone", failure_count: 1 });
    expect((await endpoint()).disabled_at).not.toBe(null);
    await uploaded(app, key);
    await app.runTask(DUTY);
    expect((await deliveries()).map((each) => each.status)).toEqual(["skipped", "skipped", "failed"]);
    expect(there.received).toHaveLength(1);
    there.behave(() => {});
    const on = await app.call("PATCH", `${path}/active`, { key, body: { active: true } });
    expect(on.body).toMatchObject({ active: true, disabled_at: null, disabled_reason: null, failure_count: 0 });
    await tryIt();
    expect(there.received).toHaveLength(2);
  });

  test("that only failed for five days is disabled, one with a success in between is not", async () => {
    const { app, there, endpoint, tryIt } = await scene({}, { webhook_retry_seconds: "1,1,1,1,1" });
    const fail = async () => {
      there.behave(status(500));
      await tryIt();
      for (let retry = 0; retry < 5; retry++) {
        app.advance(1200);
        await app.runTask(DUTY);
      }
    };
    await fail();
    app.advance(4 * 24 * HOUR);
    there.behave(() => {});
    await tryIt();
    expect(await endpoint()).toMatchObject({ failure_count: 0, failing_since: null });
    await fail();
    app.advance(4 * 24 * HOUR);
    await fail();
    expect(await endpoint()).toMatchObject({ active: true, failure_count: 12 });
    app.advance(25 * HOUR);
    await fail();
    expect(await endpoint()).toMatchObject({ active: false, disabled_reason: "failing", failure_count: 18 });
  });

  test("that is paused receives nothing: events and due deliveries become skipped", async () => {
    const { app, key, path, there, deliveries, tryIt } = await scene();
    there.behave(status(500));
    await tryIt();
    await app.call("PATCH", `${path}/active`, { key, body: { active: false } });
    await uploaded(app, key);
    app.advance(MINUTE);
    await app.runTask(DUTY);
    expect(there.received).toHaveLength(1);
    const kept = await deliveries();
    expect(kept.map((each) => [each.event, each.status])).toEqual([
      ["video.job.queued", "skipped"],
      ["video.upload.completed", "skipped"],
      ["video.asset.ready", "skipped"],
    ]);
    there.behave(() => {});
    await app.call("PATCH", `${path}/active`, { key, body: { active: true } });
    await app.runTask(DUTY);
    expect(there.received).toHaveLength(1);
    const again = await app.call("POST", `${path}/deliveries/${kept[0].delivery_id}/resend`, { key });
    expect([again.status, again.body.status]).toEqual([202, "pending"]);
    await app.runTask(DUTY);
    expect(there.received[1]?.json).toMatchObject({ id: kept[0].event_id, event: "video.job.queued" });
  });

  test("gets the same event again on request, with a new signature", async () => {
    const { app, key, path, there, deliveries, tryIt } = await scene();
    const { id } = await tryIt();
    app.advance(2000);
    expect((await app.call("POST", `${path}/deliveries/${id}/resend`, { key })).status).toBe(202);
    await app.runTask(DUTY);
    expect(await deliveries()).toMatchObject([{ id, status: "delivered", attempts: 2 }]);
    const [one, two] = there.received;
    expect(two?.body).toBe(one?.body);
    expect(two?.headers["svc-signature"]).not.toBe(one?.headers["svc-signature"]);
  });

  test("receives a test event that is marked as one, of a type that it is subscribed to", async () => {
    const { there, tryIt } = await scene({ event_types: ["video.track.ready", "video.subtitle.ready"] });
    await tryIt();
    expect(there.received[0]?.json).toMatchObject({ event: "video.subtitle.ready", data: { test: true } });
  });

  test("whose secret was encrypted under another signing secret reports it, and recovers by rotation", async () => {
    const { app, key, path, there, deliveries, tryIt } = await scene();
    const { webhookEndpoints } = await import("#storage/db/schema.ts");
    await app.opened.app.write(async (tx) => tx.update(webhookEndpoints).set({ secret: "A".repeat(120) }));
    await tryIt();
    expect((await deliveries())[0]).toMatchObject({ status: "pending", error: { code: "secret_unreadable" } });
    await app.call("POST", `${path}/rotate_secret`, { key });
    app.advance(6000);
    await app.runTask(DUTY);
    expect(there.received).toHaveLength(1);
  });
});
