import { createHmac, hash } from "node:crypto";
import { sql } from "drizzle-orm";
import { LRUCache } from "lru-cache";
import { type App, forApp } from "#app.ts";
import { pacer } from "#lib/base";
import { keptTenants } from "../tenants/deletion.ts";
import type { AcceptedEvent } from "./accept-events.ts";
import type { PlaybackEvent } from "./beacon.ts";
import { type Origin, referrerOf } from "./origin.ts";
import { record, type View } from "./record.ts";
import type { Subject } from "./subject.ts";

/** Takes the event loop about 3 ms. */
const CHUNK = 160;
/** The size of a transaction: where the disk takes 50 ms to sync, smaller ones could not keep up with the events. */
const BATCH = 2000;
/** From this number on, a flush starts without waiting for the next second. */
const FLUSH_AT = 1000;
/** About 15 MB. */
const MAX_WAITING = 50_000;
/** A client clock that is off by more than this is ignored. */
const MAX_LATE_MS = 24 * 3_600_000;

export type Views = {
  /** Accepts view events. They are kept in memory until the next flush, within a second. */
  add(views: readonly AcceptedEvent[], origin: Origin): void;
  /** Writes all queued events. */
  flush(): Promise<void>;
  /** For each subject, whether a player has sent events of a session with one of these ids. */
  areKnown(asked: readonly { subject: Subject; names: readonly string[] }[]): Promise<boolean[]>;
};

/** Queues player events for the database: a transaction for each would use the whole capacity of the disk. */
export const viewsOf = forApp((app): Views => {
  let waiting: View[] = [];
  let dropped = 0;
  let running: Promise<void> | null = null;
  /** Sessions with events that may not be stored yet. */
  const recent = new LRUCache<string, true>({ max: MAX_WAITING });

  async function drain(): Promise<void> {
    if (dropped > 0)
      app.log.warn({ dropped }, "playback events were dropped: they arrived faster than they could be stored");
    dropped = 0;
    while (waiting.length > 0) {
      const batch = waiting.slice(0, BATCH);
      await app.write(async (tx) => {
        const pace = pacer();
        // Their rows would be left in the tables that have no foreign key.
        const kept = await keptTenants(
          tx,
          batch.map(({ tenantId }) => tenantId),
        );
        const stored = batch.filter(({ tenantId }) => kept.has(tenantId));
        for (let from = 0; from < stored.length; from += CHUNK) {
          await pace();
          await record(tx, stored.slice(from, from + CHUNK));
        }
      });
      // More events arrived in the meantime.
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
    async areKnown(asked) {
      const pace = pacer();
      const keys: [number, string][][] = [];
      for (const { subject, names } of asked) {
        await pace();
        const salt = salts(app)(subject.tenantId);
        keys.push(names.map((name) => [subject.id, pseudonym(salt, "session", name)]));
      }
      const unsure = keys.flat().filter(([id, session]) => !recent.has(`${id} ${session}`));
      const stored = new Set<string>();
      for (let from = 0; from < unsure.length; from += CHUNK) {
        await pace();
        const rows = await app.db.all<{ id: number; session: string }>(
          sql`SELECT s.asset_id AS id, s.session FROM json_each(${JSON.stringify(unsure.slice(from, from + CHUNK))}) AS asked
            JOIN playback_sessions AS s ON s.asset_id = asked.value ->> 0 AND s.session = asked.value ->> 1`,
        );
        for (const { id, session } of rows) stored.add(`${id} ${session}`);
      }
      const isKnown = ([id, session]: [number, string]) =>
        recent.has(`${id} ${session}`) || stored.has(`${id} ${session}`);
      return keys.map((own) => own.some(isKnown));
    },
    add(views, origin) {
      const receivedAt = app.clock.now();
      for (const [index, { subject, event }] of views.entries()) {
        if (waiting.length < MAX_WAITING) {
          const view = toView(app, subject, event, { receivedAt, index, origin });
          recent.set(`${view.assetId} ${view.session}`, true);
          waiting.push(view);
        }
        // The newest events are dropped, so that sessions in progress keep their data.
        else dropped++;
      }
      if (waiting.length >= FLUSH_AT)
        flush().catch((error) =>
          app.log.error({ err: error }, "playback events could not be stored; they stay in memory"),
        );
    },
  };
});

/** The hash of a viewer's id that the rows of this tenant have. */
export const viewerHash = (app: App, tenantId: number, viewerId: string): string =>
  pseudonym(salts(app)(tenantId), "viewer", viewerId);

/** Derived from the signing secret, per tenant: a viewer must not be traceable across tenants. */
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

/** 96 bits. With a secret salt a plain hash is sufficient, at a quarter of the cost of a keyed one. */
const pseudonym = (salt: string, kind: string, value: string) =>
  hash("sha256", `${salt} ${kind} ${value}`, "base64url").slice(0, 16);

type Receipt = { receivedAt: number; index: number; origin: Origin };

function toView(
  app: App,
  { id, tenantId, durationSeconds }: Subject,
  event: PlaybackEvent,
  { receivedAt, index, origin }: Receipt,
): View {
  const salt = salts(app)(tenantId);
  const session = pseudonym(salt, "session", event.session_id);
  const clientMs = event.occurred_at == null ? null : Date.parse(event.occurred_at);
  const isBelieved = clientMs !== null && clientMs <= receivedAt && clientMs >= receivedAt - MAX_LATE_MS;
  return {
    tenantId,
    assetId: id,
    durationMs: durationSeconds * 1000,
    session,
    viewer: event.viewer_id ? pseudonym(salt, "viewer", event.viewer_id) : session,
    // A page knows better than its request where it is.
    origin: event.referrer ? { ...origin, referrer: referrerOf(app, event.referrer) } : origin,
    event: event.event,
    positionMs: event.position_seconds == null ? null : Math.round(event.position_seconds * 1000),
    watchedMs: Math.round((event.watched_seconds ?? 0) * 1000),
    startupMs: event.startup_ms == null ? null : Math.round(event.startup_ms),
    // Without its own timestamp an event cannot be distinguished from a repeat, and is counted.
    reportedAt: clientMs ?? receivedAt + index,
    at: isBelieved ? clientMs : receivedAt,
    receivedAt,
  };
}
