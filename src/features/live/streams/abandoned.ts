import { and, isNotNull, isNull, lt } from "drizzle-orm";
import { type App, forApp } from "#app.ts";
import { type LiveStreamRow, liveStreams as rows } from "#storage/db/schema.ts";
import { ABANDONED_MS, DEAD_MS, HEARTBEAT_MS, sharesStreams } from "../shared/server.ts";
import { liveStreams } from "./live-streams.ts";
import { endAbandoned } from "./rows.ts";

/** Without a look at the database for so long, this server was suspended, or the database unreachable. */
const GAP_MS = 15_000;
/** Then the other servers may not have written either: they have this time for it. */
const SETTLE_MS = 2 * HEARTBEAT_MS;

/** Completes the streams of servers that have died. */
export class AbandonedStreams {
  readonly #app: App;
  #lookedAt = Number.NEGATIVE_INFINITY;
  #since = 0;

  constructor(app: App) {
    this.#app = app;
  }

  /** Scheduled task. */
  async complete(): Promise<void> {
    if (!sharesStreams(this.#app)) return;
    const now = this.#app.clock.now();
    const isSilent = lt(rows.updatedAt, now - DEAD_MS);
    const silent = await this.#app.db
      .select()
      .from(rows)
      // Streams without a server are of a version that wrote nothing while they ran.
      .where(and(isNull(rows.finishedAt), isNotNull(rows.server), isSilent))
      .all();
    if (now < this.#lookedAt || now - this.#lookedAt > GAP_MS) this.#since = now;
    this.#lookedAt = now;
    if (now - this.#since < SETTLE_MS) return;
    for (const row of silent) {
      if (row.endedAt === null) await endAbandoned(this.#app, row);
      else if (isRecoverable(row, now)) await liveStreams(this.#app).adopt(row);
    }
  }
}

/** Its server has not come back, but has stored segments. Otherwise they are only on its disk. */
const isRecoverable = ({ recorded, prefix, updatedAt }: LiveStreamRow, now: number): boolean =>
  recorded && prefix !== null && updatedAt < now - ABANDONED_MS;

export const abandonedStreams = forApp((app) => new AbandonedStreams(app));
