import { sql } from "drizzle-orm";
import { type App, forApp } from "#app.ts";
import { randomName } from "#lib/base";
import { activeTraceparent } from "#lib/tracing";
import { afterCommit } from "#storage/db/after-commit.ts";
import type { Db } from "#storage/db/open.ts";
import { events } from "#storage/db/schema.ts";
import { DEFAULT_EVENT_TYPES, EVENTS, type EventData, type EventType } from "./catalog.ts";
import { MUX_PAIRS, muxNamesOfEvent } from "./mux-names.ts";

/**
 * Inserts an event, and a delivery for each subscribed endpoint, in the transaction of the change that caused it: a
 * crash leaves both or neither, no cursor can skip an event however many processes write, and the receivers are those
 * subscribed at that moment. A tenant without endpoints costs one index lookup.
 */
export async function emit<Type extends EventType>(
  tx: Db,
  app: App,
  type: Type,
  { tenantId, data }: { tenantId: number; data: EventData<Type> },
): Promise<void> {
  if (!EVENTS[type].isStored && !(await isNamed(tx, tenantId, type))) return;
  const eventId = await insertEvent(tx, app, { tenantId, type, data });
  await fanOut(tx, app, eventId);
}

/** Whether an endpoint of the tenant names an event, by our name or one of Mux's. */
async function isNamed(tx: Db, tenantId: number, type: EventType): Promise<boolean> {
  const named = (names: readonly string[]) =>
    sql`EXISTS (SELECT 1 FROM json_each(w.event_types) WHERE value IN (SELECT value FROM json_each(${JSON.stringify(names)})))`;
  const found = await tx.all(sql`
    SELECT 1 FROM webhook_endpoints w WHERE w.tenant_id = ${tenantId} AND w.deleted_at IS NULL
      AND CASE w.format WHEN 'mux' THEN ${named(muxNamesOfEvent(type))} ELSE ${named([type])} END
    LIMIT 1`);
  return found.length > 0;
}

const PAIRS = JSON.stringify(MUX_PAIRS);
const DEFAULTS = JSON.stringify(DEFAULT_EVENT_TYPES);

/** Inserts only the event, for callers that choose the receivers. Returns its id. */
export async function insertEvent(
  tx: Db,
  app: App,
  { tenantId, type, data }: { tenantId: number; type: EventType; data: Record<string, unknown> },
): Promise<number> {
  const createdAt = app.clock.now();
  const values = {
    eventId: `evt_${randomName(24)}`,
    tenantId,
    type,
    data,
    createdAt,
    traceparent: activeTraceparent(),
  };
  return (await tx.insert(events).values(values).returning({ id: events.id }).get()).id;
}

/**
 * Inserts deliveries of an event for all subscribed endpoints, in Mux's form one for each of its names, and wakes the dispatcher after the commit; those of a
 * paused endpoint are kept for replay.
 */
export async function fanOut(tx: Db, app: App, eventId: number): Promise<void> {
  const now = app.clock.now();
  const { rowsAffected } = await tx.run(sql`
    INSERT INTO webhook_deliveries
      (tenant_id, endpoint_id, event_id, name, status, next_attempt_at, created_at, updated_at)
    SELECT e.tenant_id, w.id, e.id, mux.value ->> 1, iif(w.active, 'pending', 'skipped'), iif(w.active, ${now}, NULL),
      ${now}, ${now}
    FROM events e JOIN webhook_endpoints w ON w.tenant_id = e.tenant_id AND w.deleted_at IS NULL
    LEFT JOIN json_each(${PAIRS}) AS mux ON w.format = 'mux' AND mux.value ->> 0 = e.type
    WHERE e.id = ${eventId} AND CASE w.format
      WHEN 'mux' THEN EXISTS (SELECT 1 FROM json_each(w.event_types) WHERE value = mux.value ->> 1)
        AND CASE mux.value ->> 2
          WHEN 'upload' THEN EXISTS (SELECT 1 FROM mux_uploads WHERE asset_id = CAST(e.data ->> 'asset_id' AS INTEGER))
          WHEN 'no upload' THEN
            NOT EXISTS (SELECT 1 FROM mux_uploads WHERE asset_id = CAST(e.data ->> 'asset_id' AS INTEGER))
          WHEN 'master' THEN EXISTS (
            SELECT 1 FROM mux_masters WHERE asset_id = CAST(e.data ->> 'asset_id' AS INTEGER) AND until > ${now})
          WHEN 'files' THEN
            EXISTS (SELECT 1 FROM static_renditions WHERE asset_id = CAST(e.data ->> 'asset_id' AS INTEGER))
          WHEN 'recorded' THEN EXISTS (
            SELECT 1 FROM live_streams
            WHERE channel_id = e.data ->> 'channel_id' AND ended_at IS NULL AND recorded)
          ELSE TRUE END
      ELSE w.event_types = '[]' AND e.type IN (SELECT value FROM json_each(${DEFAULTS}))
        OR EXISTS (SELECT 1 FROM json_each(w.event_types) WHERE value = e.type)
      END`);
  if (rowsAffected > 0) wakeDispatcher(tx, app);
}

const dispatcherWaker = forApp((app) => () => void app.signals.emit("delivery.due"));

/** There may be due deliveries once this transaction is committed. */
export const wakeDispatcher = (tx: Db, app: App): void => afterCommit(tx, dispatcherWaker(app));
