import { sql } from "drizzle-orm";
import { beforeEach, describe, expect, test } from "vitest";
import { liveMeter } from "#features/live/minutes/live-meter.ts";
import type { LiveStream } from "#features/live/registry.ts";
import { type TestApp, testApp } from "#test/support/app.ts";
import { expectError } from "#test/support/error.ts";
import { receivedStream, recordedStream } from "#test/support/received-stream.ts";
import { HOUR } from "#test/support/views.ts";

const CHANNELS = "/api/v1/live/channels";
const DAY = 24 * HOUR;

let app: TestApp;
let tenant: { id: number };
let key: string;
beforeEach(async () => {
  app = await testApp();
  tenant = await app.tenant();
  key = await app.key(tenant.id);
});
const now = () => app.opened.app.clock.now();
const at = (ms: number) => new Date(ms).toISOString();

type Channel = { id: number; tenant_id: number; channel: string };
const channelOf = async (fields: Record<string, unknown> = {}): Promise<Channel> =>
  (await app.as(key).createChannel({ channel: "stage", playback_policy: "public", ...fields })).body;

let streams = 0;
/** A stream of this server, from now on. */
async function goLive(channel: Channel): Promise<LiveStream> {
  const name = `stream-${++streams}`;
  await recordedStream(app, channel, name);
  return receivedStream(app, channel, name);
}

/** What the ingest process reports of a second: video and audio. 1 Mbit/s. */
function receiveSecond(stream: LiveStream): void {
  const part = { segment: 1, part: 0, offset: 0, isIndependent: true, startSeconds: 0, durationSeconds: 1 };
  const meter = liveMeter(app.opened.app);
  meter.receive(stream, { ...part, track: "180p", bytes: 100_000 });
  meter.receive(stream, { ...part, track: "audio", bytes: 25_000 });
}
const counted = () => app.runTask("count-live");
const watchedBy = (stream: LiveStream, viewers: number) => {
  for (let viewer = 0; viewer < viewers; viewer++) stream.viewers.see(`viewer ${viewer}`, now());
};
const analytics = (id: number, query = "") => app.call("GET", `${CHANNELS}/${id}/analytics${query}`, { key });

describe("views of a live channel", () => {
  const tell = (fields: object) => app.as().recordPlaybackEvents({ session_id: "s", event: "play", ...fields });

  test("are counted as views of videos, and for the tenant", async () => {
    const channel = await channelOf();
    await goLive(channel);
    const events = [
      { event: "play", occurred_at: at(now() - 60_000) },
      { event: "playing", startup_ms: 400, occurred_at: at(now() - 59_600) },
      { event: "heartbeat", position_seconds: 59, watched_seconds: 50, occurred_at: at(now()) },
    ].map((event) => ({ live_channel: "stage", session_id: "one", viewer_id: "ann", ...event }));
    const more = { live_channel: "stage", session_id: "two", viewer_id: "ann", event: "play" };
    const sent = await app.as().recordPlaybackEvents({ events: [...events, more] });
    expect([sent.status, sent.body]).toEqual([202, { accepted: 4 }]);
    const sums = { play_count: 2, unique_viewers: 1, watch_time_seconds: 50, completion_rate: 0, error_count: 0 };
    const { body } = await analytics(channel.id, "?details=true&interval=day");
    expect(body).toMatchObject({ channel_id: channel.id, ...sums, average_watch_seconds: 25 });
    expect(body.startup.session_count).toBe(1);
    expect(body.timeseries.at(-1)).toMatchObject({ play_count: 2, unique_viewers: 1 });
    const whole = (await app.as(key).getAnalytics({ top: 10 })).body;
    expect(whole).toMatchObject({ ...sums, top_assets: [] });
    expect(whole.top_channels).toEqual([
      { channel_id: channel.id, channel: "stage", name: "stage", play_count: 2, watch_time_seconds: 50 },
    ]);

    // The end of the stream, as the player of a viewer who saw it reports it.
    await tell({ live_channel: "stage", session_id: "two", event: "ended", position_seconds: 3600 });
    expect((await analytics(channel.id)).body.completion_rate).toBe(0.5);
  });

  test("need a channel that is live, and its token where it is signed", async () => {
    const open = await channelOf();
    const signed = await channelOf({ channel: "signed", playback_policy: "signed" });
    const other = await channelOf({ channel: "other", playback_policy: "signed" });
    const tokenOf = async ({ id }: Channel) => (await app.as(key).createChannelToken(id, {})).body.token;
    const token = await tokenOf(signed);
    const wrong = await tokenOf(other);
    const all = [
      { live_channel: "stage" },
      { live_channel: "nobody" },
      { live_channel: "not a name/" },
      { live_channel: "signed" },
      { live_channel: "signed", token: "x.y.z" },
      { live_channel: "signed", token: wrong },
    ];
    const stored = async () => {
      await app.runTask("record-views");
      return app.opened.app.db.all(sql`SELECT DISTINCT asset_id FROM playback_events ORDER BY asset_id`);
    };
    await goLive(signed);
    for (const [n, fields] of all.entries()) {
      const sent = await tell({ ...fields, session_id: `s${n}` });
      expect([sent.status, sent.body], JSON.stringify(fields)).toEqual([202, { accepted: 1 }]);
    }
    expect(await stored()).toEqual([]);
    await tell({ live_channel: "signed", token });
    await goLive(open);
    await tell({ live_channel: "stage" });
    expect(await stored()).toHaveLength(2);
    expect((await analytics(signed.id)).body.play_count).toBe(1);

    await app.as({ admin: app.admin }).updateTenant(tenant.id, { status: "suspended" });
    await tell({ live_channel: "stage", session_id: "late" });
    await app.as({ admin: app.admin }).updateTenant(tenant.id, { status: "active" });
    expect((await analytics(open.id)).body.play_count).toBe(1);
    for (const fields of [{}, { live_channel: "" }, { live_channel: null }])
      expectError(await tell(fields), 422, "parameter_missing");
    expectError(await tell({ live_channel: "a".repeat(200) }), 422, "validation_failed");
  });
});

describe("concurrent viewers", () => {
  test("are read by minute, hour and day, each with the most of them", async () => {
    const channel = await channelOf();
    // To the millisecond, so that nothing is in the minute before.
    app.stopClock();
    app.advance(Math.ceil(now() / DAY) * DAY - now() + HOUR);
    const start = now();
    const stream = await goLive(channel);
    for (const [minute, viewers] of [2, 7, 4].entries()) {
      if (minute > 0) app.advance(60_000);
      watchedBy(stream, viewers);
      for (let second = 0; second < 10; second++) receiveSecond(stream);
      await counted();
    }
    const query = (interval: string, more = "") =>
      `?from=${at(start - 60_000)}&to=${at(start + HOUR)}&concurrency=${interval}${more}`;
    const minutes = (await analytics(channel.id, query("minute"))).body;
    const totals = { peak_viewers: 7, peak_viewers_at: at(start + 60_000), live_seconds: 30 };
    // A session counts for 30 s: those of the minute before are gone.
    expect(minutes).toMatchObject({ ...totals, concurrent_viewers: 4 });
    const shown = (peak_viewers: number | null, seconds: number) => ({
      peak_viewers,
      live_seconds: seconds,
      bitrate: seconds === 0 ? null : 1_000_000,
    });
    expect(minutes.concurrency).toHaveLength(61);
    expect(minutes.concurrency.slice(0, 5)).toEqual(
      [shown(null, 0), shown(2, 10), shown(7, 10), shown(4, 10), shown(null, 0)].map((values, index) => ({
        start: at(start + (index - 1) * 60_000),
        ...values,
      })),
    );
    expect((await analytics(channel.id, query("hour"))).body.concurrency).toEqual([
      { start: at(start - HOUR), ...shown(null, 0) },
      { start: at(start), ...shown(7, 30) },
    ]);
    const days = (await analytics(channel.id, query("day", "&utc_offset_hours=-2"))).body.concurrency;
    expect(days).toEqual([{ start: at(start - 23 * HOUR), ...shown(7, 30) }]);
    const before = `?to=${at(start)}`;
    expect((await analytics(channel.id, before)).body).toMatchObject({ peak_viewers: 0, peak_viewers_at: null });
    expect((await analytics(channel.id, "?from=0001-01-01T00:00:00Z")).body).toMatchObject({ peak_viewers: 7 });
  });

  test("of too long a range are refused, and those of another tenant do not exist", async () => {
    const channel = await channelOf();
    const from = (days: number) => `?from=${at(now() - days * DAY - 1000)}&concurrency=`;
    for (const [interval, days] of [
      ["minute", 1],
      ["hour", 31],
      ["day", 366],
    ] as const) {
      expectError(await analytics(channel.id, from(days) + interval), 422, "validation_failed");
      expect((await analytics(channel.id, from(days - 0.5) + interval)).status).toBe(200);
    }
    expectError(await analytics(channel.id, "?concurrency=second"), 422, "validation_failed");
    const theirs = await app.key((await app.tenant()).id);
    expectError(await app.as(theirs).getChannelAnalytics(channel.id), 404, "not_found");
  });

  test("are deleted after the retention of the tenant, and of the server", async () => {
    const channel = await channelOf();
    const stream = await goLive(channel);
    const second = async () => {
      receiveSecond(stream);
      watchedBy(stream, 1);
      await counted();
    };
    const left = async () => (await analytics(channel.id, "?from=2000-01-01T00:00:00Z")).body.live_seconds;
    await second();
    await app.as().recordPlaybackEvents({ live_channel: "stage", session_id: "s", event: "play" });
    expect((await analytics(channel.id)).body.play_count).toBe(1);
    app.advance(8 * DAY);
    await second();
    const body = { delete_analytics_after_days: 7 };
    await app.as({ admin: app.admin }).updateTenant(tenant.id, body);
    await app.runTask("delete-old-analytics");
    expect(await left()).toBe(1);
    expect((await analytics(channel.id)).body.play_count).toBe(0);
    app.advance(399 * DAY);
    await app.runTask("prune-live-minutes");
    expect(await left()).toBe(1);
    app.advance(2 * DAY);
    await app.runTask("prune-live-minutes");
    expect(await left()).toBe(0);
    // What was billed stays.
    expect((await app.as(key).listTenants()).body[0].live_minutes).toBe(1);
  });
});

test("received media count in the month in which they were received", async () => {
  const channel = await channelOf();
  const date = new Date(now());
  const nextMonth = Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + 1);
  app.advance(nextMonth - now() - 1000);
  const stream = await goLive(channel);
  for (let second = 0; second < 90; second++) receiveSecond(stream);
  app.advance(2000);
  receiveSecond(stream);
  await counted();
  // Nothing is counted twice.
  await counted();
  const billing = await app.key(tenant.id, ["billing:write"]);
  const minutes = async (month: number) =>
    (await app.as(billing).getUsage({ month: at(month).slice(0, 7) })).body[0].live_minutes;
  expect([await minutes(nextMonth - 1), await minutes(nextMonth)]).toEqual([2, 1]);
  expect((await app.as(key).listTenants()).body[0].live_minutes).toBe(2);
});
