import type { Db } from "../../storage/db/open.ts";
import { events } from "../../storage/db/schema.ts";
import { randomName } from "../lib/tokens.ts";
import type { EventType } from "./catalog.ts";

export type NewEvent = { tenantId: number; type: EventType; data: Record<string, unknown>; now: number };

/** Into the outbox. Only ever called with the transaction of the change that the event tells of. */
export async function emit(tx: Db, { tenantId, type, data, now }: NewEvent): Promise<void> {
  await tx.insert(events).values({ eventId: `evt_${randomName(24)}`, tenantId, type, data, createdAt: now });
}
