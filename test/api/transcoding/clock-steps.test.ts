import { sql } from "drizzle-orm";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { settledColumns, settleTimes } from "#features/transcoding/after-clock-step.ts";
import { type TestApp, testApp } from "#test/support/app.ts";
import { until } from "#test/support/descendants.ts";
import { callback, next, readyAsset } from "#test/support/flow.ts";
import { startSmtp } from "#test/support/smtp.ts";

const SECOND = 1000;
const HOUR = 3600 * SECOND;
const DAY = 24 * HOUR;

let app: TestApp;
let smtp: Awaited<ReturnType<typeof startSmtp>>;
let key: string;
let tenant: { id: number };
let asset: { id: number };
/** Called for each mail: an error refuses it for now. */
let onMail: () => Promise<void> = async () => {};

beforeAll(async () => {
  smtp = await startSmtp({ onMailFrom: (_address, _session, done) => void onMail().then(() => done(), done) });
  app = await testApp({
    rate_limit_uploads: "100000/60",
    transcribe: "command",
    transcribe_command: "/bin/true",
    smtp_url: smtp.url,
    smtp_from: "films@example.com",
  });
});
afterAll(() => smtp.close());
beforeEach(async () => {
  onMail = async () => {};
  tenant = await app.tenant();
  key = await app.key(tenant.id);
  ({ asset } = await readyAsset(app, key));
});

/** Sets the clock, as its owner does while the program runs. */
async function step(by: number): Promise<void> {
  const { clock } = app.opened.app;
  const from = clock.now();
  app.advance(by);
  await settleTimes(app.opened.app, { from, to: from + by, suspendedMs: 0 }, true);
}
const leaseMs = () => app.opened.app.config.lease_seconds * SECOND;

const WORK = [
  {
    name: "captions",
    lane: "captions",
    begin: () => app.as(key).generateSubtitle(asset.id, { language: "en" }),
  },
  {
    name: "an audio track",
    lane: "main",
    begin: () => {
      const raw = new FormData();
      for (const [name, value] of Object.entries({ language: "de", name: "Deutsch", role: "dub" }))
        raw.append(name, value);
      raw.append("file", new Blob(["not really audio"]), "dub.wav");
      return app.as(key).createAudioTrack(asset.id, raw);
    },
  },
];
let claims = 0;
/** Ends the work, or the attempt when it is `retryable`. */
const fail = async (leased: Contract, retryable: boolean) => {
  const body = { error_code: retryable ? "encode_failed" : "input_invalid", message: "It is over.", retryable };
  expect((await callback(app, leased, "fail", body)).status).toBe(200);
};
type Contract = Awaited<ReturnType<typeof next>>["body"];
const claim = (lane: string) => next(app, `claim-${++claims}`, { worker_id: "w1", lane });

describe.each(WORK)("work on $name", ({ lane, begin }) => {
  test.each([8 * HOUR, -8 * HOUR, 30 * SECOND, -30 * SECOND])("keeps its lease after a step of %s ms", async (by) => {
    expect((await begin()).status).toBeLessThan(300);
    const { body: leased } = await claim(lane);
    app.advance(leaseMs() / 2);
    await step(by);
    expect((await callback(app, leased, "heartbeat", { progress: 1 })).status).toBe(200);
    // Neither is it kept for hours when the worker has died.
    expect((await claim(lane)).status).toBe(204);
    app.advance(leaseMs() + SECOND);
    expect((await callback(app, leased, "heartbeat", { progress: 2 })).body.code).toBe("stale_lease");
    const { status, body: again } = await claim(lane);
    expect(status).toBe(200);
    await fail(again, false);
  });

  test("is tried again in time after a step back", async () => {
    await begin();
    const { body: failed } = await claim(lane);
    await fail(failed, true);
    await step(-8 * HOUR);
    app.advance(60 * SECOND);
    const { status, body: again } = await claim(lane);
    expect(status).toBe(200);
    await fail(again, false);
  });
});

const invite = async () => {
  const email = `ann-${tenant.id}@example.com`;
  const body = { tenant_id: tenant.id, email, role: "viewer" };
  expect((await app.as({ admin: app.admin }).createInvitation(body)).status).toBe(201);
  return () => smtp.mails.filter(({ to }) => to[0] === email).length;
};

describe("mail", () => {
  test("that could not be sent is sent in time after a step back", async () => {
    const received = await invite();
    onMail = async () => {
      throw Object.assign(new Error("later"), { responseCode: 450 });
    };
    await app.runTask("send-mail");
    onMail = async () => {};
    await step(-8 * HOUR);
    app.advance(60 * SECOND);
    await app.runTask("send-mail");
    expect(received()).toBe(1);
  });

  test("that is being sent is not sent twice after a step forward", async () => {
    const received = await invite();
    let connections = 0;
    const taken = Promise.withResolvers<void>();
    onMail = () => {
      connections++;
      return taken.promise;
    };
    const sending = app.runTask("send-mail");
    await until("the server has the mail", () => connections === 1 || null);
    await step(8 * HOUR);
    // As another process does.
    await app.runTask("send-mail");
    taken.resolve();
    await sending;
    expect([connections, received()]).toEqual([1, 1]);
  });
});

test.each([30 * DAY, -30 * DAY])("an endpoint that fails for an hour does so after a step of %s ms", async (by) => {
  const body = { url: "https://hooks.example/", tenant_id: tenant.id };
  const made = await app.as(key).createWebhook(body);
  const { write, clock } = app.opened.app;
  const { id } = made.body;
  await write(async (tx) =>
    tx.run(sql`UPDATE webhook_endpoints SET failing_since = ${clock.now() - HOUR} WHERE id = ${id}`),
  );
  await step(by);
  const shown = await app.as(key).getWebhook(id);
  const since = (clock.now() - Date.parse(shown.body.failing_since)) / HOUR;
  expect(Math.round(since)).toBe(by > 0 ? 1 : 0);
});

/** Times that stay as they are when the clock is set, by the reason; `created_at` and `updated_at` of a row also do. */
const KEPT = {
  "a date that clients chose, or that was shown to people": `
    api_keys.expires_at assets.expires_at billing_orders.expires_at invitations.expires_at live_channels.starts_at
    mux_masters.until mux_uploads.expires_at pairing_codes.expires_at password_resets.expires_at sessions.ends_at sessions.expires_at
    setup_codes.expires_at shares.expires_at webhook_endpoints.previous_secret_expires_at`,
  "when something happened, which is only shown, sorted by, or asked whether it did": `
    api_keys.last_used_at api_keys.revoked_at assets.ready_at assets.source_deleted_at billing_events.received_at
    billing_orders.paid_at caption_jobs.finished_at caption_jobs.started_at import_runs.ended_at imports.committed_at ingest_batches.swept_at
    invitations.ended_at live_channels.revoked_at live_streams.finished_at live_streams.interrupted_at
    live_streams.started_at mux_uploads.canceled_at pairing_codes.used_at password_resets.used_at servers.started_at
    shares.deleted_at signing_keys.revoked_at storage_place.finished_at storage_place.started_at
    storage_place.switched_at task_leases.ended_at tenants.delete_requested_at transcoding_attempts.started_at
    transcoding_attempts.swept_at transcoding_jobs.finished_at transcoding_jobs.published_at
    transcoding_jobs.started_at transcoding_tasks.finished_at uploads.completed_at webhook_deliveries.delivered_at
    webhook_deliveries.last_attempt_at webhook_endpoints.deleted_at webhook_endpoints.disabled_at
    webhook_endpoints.last_delivery_at workers.first_seen_at`,
  "periods of days by the calendar, for what is counted, billed or pruned": `
    playback_events.at playback_events.received_at playback_events.told_at playback_sessions.last_at
    playback_sessions.played_at playback_sessions.received_at playback_sessions.stalled_at playback_sessions.started_at
    share_plays.started_at tenants.storage_changed_at traffic_anomalies.window_start usage_months.month_start
    watermarks.job_used_at watermarks.used_at`,
  "only how soon unused objects are deleted, or a rate is estimated": `
    ingest_batches.ended_at live_streams.ended_at task_leases.started_at transcoding_attempts.ended_at`,
};

test("every time in the database follows a step of the clock, or there is a reason why not", async () => {
  const tables = await app.opened.app.db.all<{ name: string; sql: string }>(
    sql`SELECT name, sql FROM sqlite_master WHERE type = 'table' AND sql IS NOT NULL`,
  );
  const times = tables.flatMap(({ name, sql: text }) =>
    [...text.matchAll(/["`]?\b(\w+)["`]? INTEGER/gi)]
      .map(([, column = ""]) => column)
      .filter((column) => /(^|_)(at|until|since|time|start|expires)$/.test(column))
      .map((column) => `${name}.${column}`),
  );
  const kept = Object.values(KEPT).flatMap((names) => names.trim().split(/\s+/));
  expect(kept.filter((name) => settledColumns.includes(name))).toEqual([]);
  const named = new Set([...settledColumns, ...kept]);
  const isOfRow = (name: string) => /\.(created|updated)_at$/.test(name) && !named.has(name);
  expect(times.filter((name) => !isOfRow(name)).toSorted()).toEqual([...named].toSorted());
});
