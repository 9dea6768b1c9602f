import { expect, test } from "vitest";
import { until } from "#test/support/descendants.ts";
import { emptyFolder } from "#test/support/folder.ts";
import { liveServer, newChannel, publish } from "#test/support/live.ts";
import { startSqld } from "#test/support/sqld.ts";

test("the streams that a plan allows are counted over all servers of a database", async () => {
  const database = await startSqld(emptyFolder());
  const meter = { included: 0, unit_price_minor: 1 };
  const plan = { storage_gb_month: meter, egress_gb: meter, transcoding_minute: meter, quotas: { live_streams: 1 } };
  const env = {
    VODBOX_DATABASE_URL: database.url,
    VODBOX_SIGNING_SECRET: "signing-secret-of-both",
    VODBOX_STORAGE: "none",
    VODBOX_PRICES: JSON.stringify({
      currency: "EUR",
      plans: { free: plan, starter: plan, pro: plan, enterprise: plan },
    }),
  };
  const a = await liveServer({ env });
  const b = await liveServer({ env });
  const first = await newChannel(a);
  const body = { channel: "second", playback_policy: "public" };
  const second = (await a.as(first.key).createChannel(body)).body;
  const statusOf = async (id: number) => (await b.as(first.key).getChannel(id)).body.status;

  const running = publish(a, first, 60);
  await until("the stream runs", async () => (await statusOf(first.id)) === "live");
  const refused = publish(b, second, 60);
  expect((await refused.exit)[0]).not.toBe(0);
  expect(refused.stderr()).toContain("plan's limit of concurrent live streams is reached");
  running.child.kill("SIGINT");
  await until("it has ended", async () => (await statusOf(first.id)) === "idle");
  publish(b, second, 60);
  await until("the other one runs", async () => (await statusOf(second.id)) === "live");
});
