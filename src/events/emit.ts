import { sql } from "drizzle-orm";
import type { Db } from "../../storage/db/open.ts";
import { events } from "../../storage/db/schema.ts";
import { randomName } from "../lib/tokens.ts";
import type { EventType } from "./catalog.ts";

export type NewEvent = { tenantId: number; type: EventType; data: Record<string, unknown>; now: number };

/**
 * Into the outbox, with a delivery for each endpoint that wants it. Only ever called with the transaction of the change
 * that the event tells of: a crash leaves all of it or nothing, no cursor can fall behind or run ahead however many
 * processes write, and who gets it is who wanted it when it happened. A tenant without endpoints, as most are, pays for
 * one look into an index.
 */
export async function emit(tx: Db, event: NewEvent): Promise<void> {
  if ((await fanOut(tx, await insertEvent(tx, event), event.now)) > 0) owed.set(tx, deliveriesOwed(tx) + 1);
}

/** The event alone, for whoever chooses its receivers. Answers its number. */
export async function insertEvent(tx: Db, { tenantId, type, data, now }: NewEvent): Promise<number> {
  const values = { eventId: `evt_${randomName(24)}`, tenantId, type, data, createdAt: now };
  return (await tx.insert(events).values(values).returning({ id: events.id }).get()).id;
}

/** Deliveries of an event to all endpoints that want it; a paused one's are kept, to be replayed. Answers how many. */
export async function fanOut(tx: Db, eventId: number, now: number): Promise<number> {
  const { rowsAffected } = await tx.run(sql`
    INSERT INTO webhook_deliveries (tenant_id, endpoint_id, event_id, status, next_attempt_at, created_at, updated_at)
    SELECT e.tenant_id, w.id, e.id, iif(w.active, 'pending', 'skipped'), iif(w.active, ${now}, NULL), ${now}, ${now}
    FROM events e JOIN webhook_endpoints w ON w.tenant_id = e.tenant_id AND w.deleted_at IS NULL
    WHERE e.id = ${eventId}
      AND (w.event_types = '[]' OR EXISTS (SELECT 1 FROM json_each(w.event_types) WHERE value = e.type))`);
  return rowsAffected;
}

const owed = new WeakMap<Db, number>();
/** Grows with each event in this transaction that an endpoint waits for. */
export const deliveriesOwed = (tx: Db): number => owed.get(tx) ?? 0;
