import { expect, test } from "vitest";
import { json } from "#test/support/commands/outcome.ts";
import { until } from "#test/support/descendants.ts";
import { type LiveServer, liveServer, newChannel, publish, type TestChannel } from "#test/support/live.ts";
import { nightly } from "#test/support/nightly.ts";
import { stopCleanly } from "#test/support/process.ts";

/** What tenants are charged for live streams, and how many they may publish, with ffmpeg as publisher. */

const analyticsOf = async ({ call }: LiveServer, { id, key }: TestChannel, query = "") =>
  (await call("GET", `/api/v1/live/channels/${id}/analytics${query}`, { key })).body;
const secondsOf = async (server: LiveServer, channel: TestChannel) =>
  (await analyticsOf(server, channel)).live_seconds as number;

async function recordedSeconds({ as }: LiveServer, { key }: TestChannel, count = 1): Promise<number> {
  const assets = async () => (await as(key).listAssets()).body as { duration_seconds: number }[];
  await until("the recordings are assets", async () => (await assets()).length === count);
  return (await assets()).reduce((sum, { duration_seconds }) => sum + duration_seconds, 0);
}

const meter = { included: 0, unit_price_minor: 1 };
const plan = { storage_gb_month: meter, egress_gb: meter, transcoding_minute: meter };
/** `pro` is the plan of new tenants. */
const prices = (pro: object) => ({
  VODBOX_PRICES: JSON.stringify({
    currency: "EUR",
    plans: { free: plan, starter: plan, pro: { ...plan, ...pro }, enterprise: plan },
  }),
});

test("received media are counted once among all processes, and billed where the plan has a price for them", async () => {
  const live_minute = { included: 0, unit_price_minor: 2.5 };
  const server = await liveServer({ env: { ...prices({ live_minute }), VODBOX_PROCESSES: "2" } });
  const channel = await newChannel(server);
  const [tenant] = (await server.as({ admin: server.admin }).listTenants()).body;
  // The process that receives streams knows a channel that another one has created within a second.
  await until("it is published", async () => (await publish(server, channel, 7).exit)[0] === 0);
  const recorded = await recordedSeconds(server, channel);
  expect((await publish(server, channel, 3).exit)[0]).toBe(0);
  const both = await recordedSeconds(server, channel, 2);
  expect(both).toBeGreaterThan(recorded);
  await until("all is counted", async () => (await secondsOf(server, channel)) > both - 0.2);
  expect(await secondsOf(server, channel)).toBeLessThan(both + 0.2);

  const { as, call, admin } = server;
  const estimate = await as({ admin }).getBillingEstimate({ tenant_id: tenant.id });
  expect(estimate.body.line_items[3]).toEqual({
    meter: "live_minutes",
    unit: "minute",
    quantity: 1,
    included_quantity: 0,
    billable_quantity: 1,
    unit_price_minor: 2.5,
    amount_minor: 3,
  });
  const [summary] = (await as({ admin }).getUsage()).body;
  expect(summary).toMatchObject({ tenant_id: tenant.id, live_minutes: 1 });
  expect((await as({ admin }).listTenants()).body[0].live_minutes).toBe(1);
  expect((await call("GET", "/metrics", { admin })).text).toMatch(/^vodbox_live_seconds_total (9|10)/m);
  const [row] = (await json(["admin", "usage", "--data", server.dataDir], { env: { VODBOX_ADMIN_TOKEN: admin } })) as [
    { live_minutes: number },
  ];
  expect(row.live_minutes).toBe(1);
});

test("a server that is killed loses a few seconds of usage, and its next start counts none of it again", async () => {
  const server = await liveServer();
  const channel = await newChannel(server);
  publish(server, channel, 60);
  await until("some seconds are counted", async () => (await secondsOf(server, channel)) > 4, 30_000);
  const counted = await secondsOf(server, channel);
  server.child.kill("SIGKILL");
  await server.ended;
  const again = await liveServer({ dataDir: server.dataDir });
  const recorded = await recordedSeconds(again, channel);
  const kept = await secondsOf(again, channel);
  expect(kept).toBeGreaterThanOrEqual(counted);
  expect(kept).toBeLessThan(recorded + 0.2);
  expect(kept).toBeGreaterThan(recorded - 7);
  // A stop writes what the schedule has not written yet.
  await stopCleanly(again);
  expect(await secondsOf(await liveServer({ dataDir: server.dataDir }), channel)).toBe(kept);
});

nightly("a plan limits the streams that a tenant publishes at once", async () => {
  const server = await liveServer({ env: { ...prices({ quotas: { live_streams: 1 } }), VODBOX_LOG_LEVEL: "info" } });
  const first = await newChannel(server);
  const { as, call, admin } = server;
  const create = async (options: { key: string } | { admin: string }, body: object) =>
    (await call("POST", "/api/v1/live/channels", { ...options, body: { playback_policy: "public", ...body } })).body;
  const second = await create({ key: first.key }, { channel: "second" });
  const other = await as({ admin }).createTenant({ name: "Other", slug: "other" });
  const theirs = await create({ admin }, { tenant_id: other.body.id, channel: "theirs" });
  const statusOf = async (id: number) => (await as({ admin }).getChannel(id)).body.status;
  const isLive = (id: number) => until(`channel ${id} is live`, async () => (await statusOf(id)) === "live", 30_000);

  const running = publish(server, first, 60);
  await isLive(first.id);
  const refused = publish(server, second, 60);
  expect((await refused.exit)[0]).not.toBe(0);
  expect(refused.stderr()).toContain("plan's limit of concurrent live streams is reached");
  await until("the reason is in the log", () =>
    /a publish was refused.*limit|limit.*a publish was refused/.test(server.stderr() + server.stdout()),
  );
  expect(await statusOf(second.id)).toBe("idle");
  publish(server, theirs, 60);
  await isLive(theirs.id);

  // Its place is kept for a publisher whose connection broke, and free when it ends the stream.
  running.child.kill("SIGKILL");
  await running.exit;
  expect((await publish(server, second, 60).exit)[0]).not.toBe(0);
  expect((await publish(server, first, 3).exit)[0]).toBe(0);
  publish(server, second, 60);
  await isLive(second.id);
});

nightly("a plan limits the bitrate of a stream", async () => {
  const server = await liveServer({ env: prices({ quotas: { live_bitrate: 100_000 } }) });
  const channel = await newChannel(server);
  const publishing = publish(server, channel, 60);
  expect((await publishing.exit)[0]).not.toBe(0);
  expect(publishing.stderr()).toContain("The stream exceeds 0.1 Mbit/s.");
});

type Minute = { start: string; peak_viewers: number | null; bitrate: number | null; live_seconds: number };

test("viewers at once and the bitrate are known by minute", async () => {
  const server = await liveServer();
  const channel = await newChannel(server);
  const publishing = publish(server, channel, 60);
  const { as, admin, base } = server;
  const shown = async () => (await as({ admin }).getChannel(channel.id)).body;
  await until("it is live", async () => (await shown()).status === "live", 30_000);
  const request = async (file: string, agent: string) =>
    (await fetch(`${base}/live/stage/${file}`, { headers: { "user-agent": agent } })).text();
  // A viewer who requests both playlists is counted once, and either is enough.
  const master = await request("master.m3u8", "one");
  const playlist = master.split("\n").find((line) => line !== "" && !line.startsWith("#")) as string;
  await request(playlist, "one");
  await request(playlist, "two");
  await request("master.m3u8", "three");
  const from = new Date(Date.now() - 120_000).toISOString();
  const read = () => analyticsOf(server, channel, `?concurrency=minute&from=${from}`);
  // The minute is written every few seconds.
  const isCounted = ({ peak_viewers, concurrency: all }: Record<string, any>) =>
    // A minute that has just begun may have viewers before the stream is measured in it.
    peak_viewers === 3 && all.some((minute: Minute) => minute.peak_viewers === 3 && minute.live_seconds > 0);
  await until("they are counted", async () => isCounted(await read()));
  const isMeasured = ({ concurrency: all }: Record<string, any>) => all.some(({ bitrate }: Minute) => bitrate !== null);
  await until("the bitrate is known", async () => isMeasured(await read()));
  const { concurrent_viewers, peak_viewers_at, concurrency, live_seconds } = await read();
  expect(concurrent_viewers).toBe(3);
  const minutes = (concurrency as Minute[]).filter(({ live_seconds: seconds }) => seconds > 0);
  expect(minutes.reduce((sum, minute) => sum + minute.live_seconds, 0)).toBeCloseTo(live_seconds, 3);
  expect(
    minutes.map(({ peak_viewers }) => peak_viewers),
    JSON.stringify({ concurrency, live_seconds, peak_viewers_at }),
  ).toContain(3);
  expect(minutes.find(({ peak_viewers }) => peak_viewers === 3)?.start).toBe(peak_viewers_at);
  // The stream may have begun just before the end of a minute, which then has no measurement.
  const measured = minutes.filter(({ bitrate, live_seconds: seconds }) => bitrate !== null || seconds > 10);
  expect(measured).not.toEqual([]);
  for (const { bitrate } of measured) expect(bitrate).toBeGreaterThan(10_000);
  // Before the stream there are minutes too, without values.
  expect(concurrency[0]).toMatchObject({ peak_viewers: null, bitrate: null, live_seconds: 0 });
  expect((concurrency as Minute[]).length).toBeGreaterThanOrEqual(2);
  publishing.child.kill("SIGINT");
  await until("it has ended", async () => (await shown()).status === "idle");
  expect(await read()).toMatchObject({ concurrent_viewers: 0, peak_viewers: 3 });
});
