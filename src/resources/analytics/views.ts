import { createHmac, hash } from "node:crypto";
import { type App, forApp } from "../../app.ts";
import { pacer } from "../../lib/pace.ts";
import type { AcceptedEvent } from "./accept-events.ts";
import type { PlaybackEvent } from "./beacon.ts";
import { record, type View } from "./record.ts";

/** It holds the event loop for about 3 ms. */
const CHUNK = 200;
/** One transaction's worth: where the disk takes 50 ms to sync, smaller ones would fall behind what comes in. */
const BATCH = 2000;
/** From here on the next second is not waited for. */
const FLUSH_AT = 1000;
/** About 15 MB. */
const MAX_WAITING = 50_000;
/** A clock that is further off is not believed. */
const MAX_LATE_MS = 24 * 3_600_000;

export type Views = {
  /** Takes the events of views. Kept in memory until the next flush: a second. */
  add(views: readonly AcceptedEvent[]): void;
  /** Writes down all that waits. */
  flush(): Promise<void>;
};

/** What viewers' players told, on its way into the database: a transaction for each would be the whole capacity of the disk. */
export const viewsOf = forApp((app): Views => {
  let waiting: View[] = [];
  let dropped = 0;
  let running: Promise<void> | null = null;

  async function drain(): Promise<void> {
    if (dropped > 0)
      app.log.warn({ dropped }, "playback events were dropped: they came faster than they can be written");
    dropped = 0;
    while (waiting.length > 0) {
      const batch = waiting.slice(0, BATCH);
      await app.write(async (tx) => {
        const pace = pacer();
        for (let from = 0; from < batch.length; from += CHUNK) {
          await pace();
          await record(tx, batch.slice(from, from + CHUNK));
        }
      });
      // Others came meanwhile.
      waiting = waiting.slice(batch.length);
    }
  }

  const flush = () => {
    running ??= drain().finally(() => {
      running = null;
    });
    return running;
  };

  return {
    flush,
    add(views) {
      const receivedAt = app.clock.now();
      for (const [index, { asset, event }] of views.entries()) {
        if (waiting.length < MAX_WAITING) waiting.push(toView(app, asset, event, { receivedAt, index }));
        // The newest go: sessions that are under way keep what they have.
        else dropped++;
      }
      if (waiting.length >= FLUSH_AT)
        flush().catch((error) => app.log.error({ err: error }, "playback events wait: they could not be written"));
    },
  };
});

/** Of the signing secret, and another for each tenant: nobody is to be followed from one to the next. */
const salts = forApp((app) => {
  const known = new Map<number, string>();
  return (tenantId: number): string => {
    const salt =
      known.get(tenantId) ??
      createHmac("sha256", app.secrets.signing_secret).update(`viewers of tenant ${tenantId}`).digest("base64url");
    known.set(tenantId, salt);
    return salt;
  };
});

/** 96 bits. With a salt that nobody knows a plain hash is enough, at a quarter of the cost of a keyed one. */
const pseudonym = (salt: string, kind: string, value: string) =>
  hash("sha256", `${salt} ${kind} ${value}`, "base64url").slice(0, 16);

type Receipt = { receivedAt: number; index: number };

function toView(app: App, asset: AcceptedEvent["asset"], event: PlaybackEvent, { receivedAt, index }: Receipt): View {
  const salt = salts(app)(asset.tenantId);
  const session = pseudonym(salt, "session", event.session_id);
  const told = event.occurred_at == null ? null : Date.parse(event.occurred_at);
  const isBelieved = told !== null && told <= receivedAt && told >= receivedAt - MAX_LATE_MS;
  return {
    tenantId: asset.tenantId,
    assetId: asset.id,
    durationMs: asset.durationSeconds * 1000,
    session,
    viewer: event.viewer_id ? pseudonym(salt, "viewer", event.viewer_id) : session,
    event: event.event,
    positionMs: event.position_seconds == null ? null : Math.round(event.position_seconds * 1000),
    watchedMs: Math.round((event.watched_seconds ?? 0) * 1000),
    startupMs: event.startup_ms == null ? null : Math.round(event.startup_ms),
    // Without a time of its own one event cannot be told from the next that is alike: it is no repeat of that.
    toldAt: told ?? receivedAt + index,
    at: isBelieved ? told : receivedAt,
    receivedAt,
  };
}
