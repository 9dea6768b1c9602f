import { join } from "node:path";
import { sql } from "drizzle-orm";
import pino from "pino";
import { deliverDue } from "#features/webhooks/dispatcher.ts";
import { encipher, newSigningSecret } from "#features/webhooks/secret.ts";
import { signatureHeaders } from "#features/webhooks/sign.ts";
import { createSafeHttpClient, post } from "#lib/network";
import { loadConfig } from "#platform/config/load.ts";
import { openApp } from "#src/open.ts";
import { startReference, workFolder } from "./processes.ts";
import { alternately, compare, type Result } from "./result.ts";

const ROUNDS = 5;
const ENDPOINTS = 20;
const EVENTS = 250;
const COUNT = ENDPOINTS * EVENTS;
/** The dispatcher's concurrency for this number of endpoints. */
const AT_ONCE = 4 * ENDPOINTS;
const ALLOW = ["127.0.0.0/8"];
const DATA = { asset_id: "42", track_id: 7, kind: "chapter", name: "default" };

/** Deliveries per second, each recorded, compared with a loop that only signs and posts with the same HTTP client. */
export async function benchDeliveries(): Promise<Result[]> {
  const work = workFolder();
  const receiver = await startReference("receiver");
  const config = loadConfig({
    flags: { data_dir: join(work.path, "data"), webhook_allow_cidrs: ALLOW.join(), min_free_bytes: 0 },
    env: {},
  });
  const { app, beginStop, close } = await openApp(config, { log: pino({ level: "warn" }) });
  const secret = newSigningSecret();
  try {
    await app.write(async (tx) => {
      await tx.run(
        sql`INSERT INTO tenants (id, name, slug, created_at, updated_at) VALUES (1, 'Bench', 'bench', 0, 0)`,
      );
      for (let endpoint = 0; endpoint < ENDPOINTS; endpoint++)
        await tx.run(sql`INSERT INTO webhook_endpoints (tenant_id, url, secret, created_at, updated_at)
          VALUES (1, ${receiver.base}, ${encipher(app, 1, secret)}, 0, 0)`);
    });
    const door = createSafeHttpClient({ allowCidrs: ALLOW });
    const rate = (from: number) => (COUNT * 1000) / (performance.now() - from);
    const samples = await alternately(ROUNDS, {
      async ours() {
        await fill();
        const from = performance.now();
        await deliverDue(app);
        return rate(from);
      },
      async theirs() {
        let left = COUNT;
        const from = performance.now();
        const loop = async () => {
          while (left-- > 0) {
            const now = Date.now();
            const id = `evt_${left}`;
            const body = JSON.stringify({
              id,
              event: "video.track.ready",
              created_at: new Date(now),
              tenant_id: 1,
              data: DATA,
            });
            const headers = {
              "content-type": "application/json",
              ...signatureHeaders({ id, body, secrets: [secret], now }),
            };
            await post(door, receiver.base, { headers, body, timeoutMs: 15_000, maxAnswerBytes: 1024 });
          }
        };
        await Promise.all(Array.from({ length: AT_ONCE }, loop));
        return rate(from);
      },
    });
    door.close();
    const [{ delivered = 0 } = {}] = await app.db.all<{ delivered: number }>(
      sql`SELECT count(*) AS delivered FROM webhook_deliveries WHERE status = 'delivered'`,
    );
    if (delivered !== COUNT * ROUNDS) throw new Error(`${delivered} of ${COUNT * ROUNDS} were delivered`);
    return [
      compare(`webhook deliveries, ${ENDPOINTS} endpoints`, samples, {
        reference: "the same client and signatures, nothing recorded",
        unit: "deliveries/s",
        bar: { atLeast: 0.7 },
      }),
    ];
  } finally {
    beginStop();
    await receiver.stop();
    await close();
    work.remove();
  }

  /** EVENTS of them, as `emit` inserts them, due for every endpoint. */
  async function fill(): Promise<void> {
    const now = app.clock.now();
    await app.write(async (tx) => {
      await tx.run(sql`INSERT INTO events (event_id, tenant_id, type, data, created_at)
        SELECT 'evt_' || hex(randomblob(12)), 1, 'video.track.ready', ${JSON.stringify(DATA)}, ${now}
        FROM generate_series(1, ${EVENTS})`);
      await tx.run(sql`INSERT INTO webhook_deliveries (tenant_id, endpoint_id, event_id, next_attempt_at, created_at, updated_at)
        SELECT 1, w.id, e.id, ${now}, ${now}, ${now}
        FROM (SELECT id FROM events ORDER BY id DESC LIMIT ${EVENTS}) e, webhook_endpoints w`);
    });
  }
}
