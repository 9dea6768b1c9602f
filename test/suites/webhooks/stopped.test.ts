import { expect, test } from "vitest";
import { until } from "#test/support/descendants.ts";
import { emptyFolder } from "#test/support/folder.ts";
import { startServer } from "#test/support/process.ts";
import { receiver } from "#test/support/receiver.ts";

test("a stop aborts hanging attempts, counts none of them, and the next start repeats them immediately", async () => {
  const dataDir = emptyFolder();
  const env = { VODBOX_WEBHOOK_ALLOW_CIDRS: "127.0.0.0/8" };
  const there = await receiver(() => new Promise(() => {}));
  const first = await startServer(dataDir, { env });
  const { admin } = first;
  const tenant = await first.as({ admin }).createTenant({ name: "A", slug: "a" });
  const body = { tenant_id: tenant.body.id, url: there.url };
  const { id } = (await first.as({ admin }).createWebhook(body)).body;
  for (let count = 0; count < 6; count++) await first.as({ admin }).testWebhook(id);
  await until("as many as are made at once", () => there.received.length === 4);
  first.child.kill("SIGTERM");
  expect(await first.ended).toMatchObject({ code: 0, stderr: "" });

  there.behave(() => {});
  const second = await startServer(dataDir, { env });
  const deliveries = async () => (await second.as({ admin }).listDeliveries(id)).body;
  await until("all", async () => (await deliveries()).every((each) => each.status === "delivered"));
  // An attempt that the stop had waited for would count.
  expect((await deliveries()).map((each) => each.attempts)).toEqual([1, 1, 1, 1, 1, 1]);
  expect(there.received).toHaveLength(10);
});

test("a commit wakes the dispatcher: no delivery waits for the schedule", async () => {
  const there = await receiver();
  const server = await startServer(emptyFolder(), { env: { VODBOX_WEBHOOK_ALLOW_CIDRS: "127.0.0.0/8" } });
  const { admin } = server;
  const tenant = await server.as({ admin }).createTenant({ name: "A", slug: "a" });
  const tenant_id = tenant.body.id;
  await server.as({ admin }).createWebhook({ tenant_id, url: there.url });
  const upload = { tenant_id, filename: "a.mp4", bytes_expected: 1 };
  const { asset_id } = (await server.as({ admin }).initiateUpload(upload)).body;
  const waits: number[] = [];
  for (let name = 0; name < 20; name++) {
    const track = { kind: "scene", name: `track-${name}`, cues: [] };
    await server.as({ admin }).setTrack(asset_id, track);
    const from = performance.now();
    await until("it came", () => there.received.length > name);
    waits.push(performance.now() - from);
  }
  // A schedule of one second would deliver one of them at each of its times, and so delay each by almost a second. A busy
  // machine delays some.
  expect(waits.toSorted((a, b) => a - b)[4]).toBeLessThan(500);
});
