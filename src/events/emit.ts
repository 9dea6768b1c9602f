import { eq, sql } from "drizzle-orm";
import type { Db } from "../../storage/db/open.ts";
import { prepared } from "../../storage/db/prepared.ts";
import { events } from "../../storage/db/schema.ts";
import { randomName } from "../lib/tokens.ts";
import type { EventType } from "./catalog.ts";

export type NewEvent = { tenantId: number; type: EventType; data: Record<string, unknown>; now: number };

/**
 * Into the outbox, with a delivery for each endpoint that wants it. Only ever called with the transaction of the change
 * that the event tells of, so that a crash leaves all of it or nothing: no cursor can fall behind or run ahead, however
 * many processes write. A tenant without endpoints, as most are, pays for one look into an index.
 */
export async function emit(tx: Db, event: NewEvent): Promise<void> {
  const id = await insertEvent(tx, event);
  const { rowsAffected } = await fanOut(tx).run({ id });
  if (rowsAffected > 0) owed.set(tx, deliveriesOwed(tx) + 1);
}

/** The event alone, for whoever chooses its receivers. Its number. */
export async function insertEvent(tx: Db, { tenantId, type, data, now }: NewEvent): Promise<number> {
  const eventId = `evt_${randomName(24)}`;
  const [row] = await tx.insert(events).values({ eventId, tenantId, type, data, createdAt: now }).returning(justId);
  return (row as { id: number }).id;
}
const justId = { id: events.id };

/** A paused endpoint's are kept, to be replayed. */
const fanOut = prepared((db) => {
  const statement = db
    .select({ id: events.id })
    .from(events)
    .where(eq(events.id, sql.placeholder("id")))
    .prepare();
  return { run: ({ id }: { id: number }) => db.run(fanOutOf(id)), statement };
});
const fanOutOf = (id: number) => sql``;

const owed = new WeakMap<Db, number>();
/** Grows with each event that somebody waits for. */
export const deliveriesOwed = (tx: Db): number => owed.get(tx) ?? 0;
