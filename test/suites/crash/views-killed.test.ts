import { setTimeout as sleep } from "node:timers/promises";
import Sqlite from "libsql";
import { expect, test } from "vitest";
import { amount } from "#test/support/amount.ts";
import { until } from "#test/support/descendants.ts";
import { emptyFolder } from "#test/support/folder.ts";
import { startServer } from "#test/support/process.ts";
import { seeded } from "#test/support/seed.ts";
import { film } from "#test/support/views.ts";

const ROUNDS = amount(2, 8, "CRASH_ROUNDS");
/** A flush each second, and as long again for the write. On a busy machine it takes longer in some of the rounds. */
const WRITTEN_WITHIN_MS = 2000;
const env = { VODBOX_RATE_LIMIT_BEACON: "1000000/1", VODBOX_MIN_FREE_BYTES: "0" };

test(`kill -9 under beacons, ${ROUNDS} times: what was counted after two seconds stays counted, once, and a stop loses none`, async () => {
  const random = seeded();
  const dataDir = emptyFolder();
  let server = await startServer(dataDir, { env });
  const { admin } = server;
  const tenant = await server.as({ admin }).createTenant({ name: "Views", slug: "views" });
  const { id } = await film(server, tenant.body.id);
  const plays = async () => (await server.as({ admin }).getAssetAnalytics(id)).body.play_count as number;
  let sessions = 0;
  /** Plays of this round that were acknowledged. */
  let answered = 0;
  /** How long it took to count them. */
  const delays: number[] = [];

  async function load(): Promise<void> {
    try {
      for (;;) {
        const events = Array.from({ length: random.whole(1, 30) }, () => ({
          asset_id: id,
          session_id: `s${++sessions}`,
          event: "play",
          occurred_at: new Date().toISOString(),
        }));
        const body = { events };
        const answer = await server.as().recordPlaybackEvents(body);
        if (answer.status !== 202) throw new Error(answer.text);
        // Sometimes a repeat, which must not count.
        if (random.chance(0.2)) await server.as().recordPlaybackEvents(body);
        answered += events.length;
      }
    } catch {
      // The server has exited.
    }
  }

  let counted = 0;
  for (let round = 1; round <= ROUNDS; round++) {
    const last = round === ROUNDS;
    const before = counted;
    answered = 0;
    const sent = sessions;
    const loading = load();
    await until("some are acknowledged", () => answered > 0);
    // At any moment between two flushes.
    await sleep(random.whole(0, 1500));
    const acknowledged = answered;
    const from = performance.now();
    await until("they count", async () => (await plays()) >= before + acknowledged);
    delays.push(performance.now() - from);
    await sleep(random.whole(0, 1500));
    server.child.kill(last ? "SIGTERM" : "SIGKILL");
    await server.ended;
    await loading;
    const safe = last ? answered : acknowledged;
    server = await startServer(dataDir, { env });
    counted = await plays();
    expect(counted - before, `round ${round}`).toBeGreaterThanOrEqual(safe);
    expect(counted - before).toBeLessThanOrEqual(sessions - sent);
  }
  server.child.kill("SIGTERM");
  await server.ended;
  expect(Math.min(...delays), `${delays.map(Math.round)}`).toBeLessThan(WRITTEN_WITHIN_MS);

  // Every sum matches the underlying rows.
  const database = new Sqlite(`${dataDir}/vodbox.db`);
  const { _metadata, ...numbers } = database
    .prepare(
      `SELECT (SELECT count(*) FROM playback_events) AS events, (SELECT count(*) FROM playback_sessions) AS sessions,
        (SELECT sum(plays) FROM analytics_hours WHERE asset_id = 0) AS ofTenant,
        (SELECT sum(plays) FROM analytics_hours WHERE asset_id > 0) AS ofAsset,
        (SELECT sum(sessions) FROM analytics_reach) AS reach,
        (SELECT sum(viewers) FROM analytics_returns WHERE asset_id = 0 AND last_hour = -1) AS viewers`,
    )
    .get([]) as Record<string, unknown>;
  database.close();
  expect(new Set(Object.values(numbers))).toEqual(new Set([counted]));
});
