import { join } from "node:path";
import Sqlite from "libsql";
import { expect, test } from "vitest";
import { amount } from "#test/support/amount.ts";
import { until } from "#test/support/descendants.ts";
import { emptyFolder } from "#test/support/folder.ts";
import { startServer, stopCleanly } from "#test/support/process.ts";
import { receiver } from "#test/support/receiver.ts";
import { seeded } from "#test/support/seed.ts";

const ROUNDS = amount(2, 20, "CRASH_ROUNDS");
const WRITERS = 6;
const env = {
  VODBOX_WEBHOOK_ALLOW_CIDRS: "127.0.0.0/8",
  VODBOX_WEBHOOK_RETRY_SECONDS: "0,0,1,1,1",
  VODBOX_RATE_LIMIT_UPLOADS: "1000000/60",
  VODBOX_MIN_FREE_BYTES: "0",
};

test(`kill -9 under load, ${ROUNDS} times: every event arrives at every endpoint`, async () => {
  const random = seeded();
  const dataDir = emptyFolder();
  const all = await receiver();
  // Refuses a quarter; with up to six attempts for one event almost certainly one is accepted.
  const moody = await receiver((_, response) => {
    if (random.chance(0.25)) response.writeHead(503).end();
  });
  let server = await startServer(dataDir, { env });
  const { admin } = server;
  const tenant = await server.as({ admin }).createTenant({ name: "Load", slug: "load" });
  const tenant_id = tenant.body.id;
  for (const { url } of [all, moody]) {
    const made = await server.as({ admin }).createWebhook({ tenant_id, url });
    expect(made.status).toBe(201);
  }
  const asset = await server.as({ admin }).initiateUpload({ tenant_id, filename: "a.mp4", bytes_expected: 1 });
  const acknowledged = new Set<number>();
  let names = 0;

  for (let round = 1; round <= ROUNDS; round++) {
    let gone = false;
    let wanted = random.whole(10, 50);
    const enough = Promise.withResolvers<void>();
    const write = async () => {
      while (!gone) {
        const body = { kind: "scene", name: `track-${++names}`, cues: [] };
        const answer = await server
          .as({ admin })
          .setTrack(asset.body.asset_id, body)
          .catch(() => null);
        if (!answer) return;
        expect(answer.status).toBe(201);
        acknowledged.add(answer.body.id);
        if (--wanted === 0) enough.resolve();
      }
    };
    const writers = Promise.all(Array.from({ length: WRITERS }, write));
    await enough.promise;
    // At any moment during the work, not only right after a response.
    await new Promise((resolve) => setTimeout(resolve, random.next() * 12));
    server.child.kill("SIGKILL");
    expect((await server.ended).signal).toBe("SIGKILL");
    gone = true;
    await writers;
    server = await startServer(dataDir, { env });
  }

  const pending = async () =>
    (await server.as({ admin }).listAllDeliveries({ status: "pending", limit: 1 })).body.length;
  await until("nothing pending", async () => (await pending()) === 0, 60_000);
  await stopCleanly(server);

  const database = new Sqlite(join(dataDir, "vodbox.db"), { readonly: true } as Sqlite.Options);
  const rows = <R>(sql: string) => database.prepare(sql).all([]) as R[];
  const tracksKept = rows<{ id: number }>("SELECT id FROM tracks").map(({ id }) => id);
  const events = rows<{ event_id: string; track: number }>(
    "SELECT event_id, data ->> 'track_id' AS track FROM events WHERE type = 'video.track.ready'",
  );
  const statuses = rows<{ status: string; count: number }>(
    "SELECT status, count(*) AS count FROM webhook_deliveries GROUP BY status",
  );
  database.close();
  // Every acknowledged change is stored; every stored change has its event; every event was delivered.
  const kept = new Set(tracksKept);
  expect([...acknowledged].filter((id) => !kept.has(id))).toEqual([]);
  expect(events.map(({ track }) => track).toSorted((a, b) => a - b)).toEqual(tracksKept.toSorted((a, b) => a - b));
  for (const { received } of [all, moody]) {
    const arrived = new Set(received.map(({ json }) => json.id));
    expect(events.filter(({ event_id }) => !arrived.has(event_id))).toEqual([]);
  }
  expect(statuses.filter(({ status }) => status !== "failed")).toEqual([
    { status: "delivered", count: expect.any(Number) },
  ]);
  console.log(`${events.length} events, ${all.received.length + moody.received.length} attempts`);
  expect(events.length).toBeGreaterThan(ROUNDS * 10);
});
