import { and, asc, count, desc, eq, gte, isNull, lt, type SQL } from "drizzle-orm";
import type { Db } from "../../../storage/db/open.ts";
import {
  type DeliveryRow,
  webhookDeliveries as deliveries,
  type EndpointRow,
  webhookEndpoints as endpoints,
  events,
} from "../../../storage/db/schema.ts";
import { type Caller, ownedBy } from "../../http/caller.ts";
import type { ShownDelivery } from "./schema.ts";

/** The caller's endpoint; one that is being deleted is gone. */
export const getEndpoint = (db: Db, caller: Caller, id: number): Promise<EndpointRow | undefined> =>
  db
    .select()
    .from(endpoints)
    .where(and(eq(endpoints.id, id), isNull(endpoints.deletedAt), ownedBy(caller, endpoints.tenantId)))
    .get();

/** In the order of their making, up to `limit` + 1. */
export const listEndpoints = (
  db: Db,
  caller: Caller,
  page: { limit: number; after: number | undefined; tenantId: number | undefined },
): Promise<EndpointRow[]> =>
  db
    .select()
    .from(endpoints)
    .where(
      and(
        isNull(endpoints.deletedAt),
        ownedBy(caller, endpoints.tenantId),
        page.tenantId === undefined ? undefined : eq(endpoints.tenantId, page.tenantId),
        page.after === undefined ? undefined : lt(endpoints.id, page.after),
      ),
    )
    .orderBy(desc(endpoints.id))
    .limit(page.limit + 1)
    .all();

export const countEndpoints = async (db: Db, tenantId: number): Promise<number> => {
  const mine = and(eq(endpoints.tenantId, tenantId), isNull(endpoints.deletedAt));
  return (await db.select({ count: count() }).from(endpoints).where(mine).get())?.count ?? 0;
};

export type DeliveryFilter = {
  tenantId?: number | undefined;
  endpointId?: number | undefined;
  status?: DeliveryRow["status"] | undefined;
  event?: string | undefined;
  /** Of the event, in milliseconds. */
  since?: number | undefined;
  until?: number | undefined;
};

/** The conditions of a filter, over deliveries joined with their events and endpoints. */
export const matching = (caller: Caller, filter: DeliveryFilter): SQL | undefined =>
  and(
    ownedBy(caller, deliveries.tenantId),
    isNull(endpoints.deletedAt),
    filter.tenantId === undefined ? undefined : eq(deliveries.tenantId, filter.tenantId),
    filter.endpointId === undefined ? undefined : eq(deliveries.endpointId, filter.endpointId),
    filter.status && eq(deliveries.status, filter.status),
    filter.event === undefined ? undefined : eq(events.type, filter.event),
    filter.since === undefined ? undefined : gte(events.createdAt, filter.since),
    filter.until === undefined ? undefined : lt(events.createdAt, filter.until),
  );

const shown = (db: Db) =>
  db
    .select({ delivery: deliveries, eventName: events.eventId, event: events.type })
    .from(deliveries)
    .innerJoin(events, eq(events.id, deliveries.eventId))
    .innerJoin(endpoints, eq(endpoints.id, deliveries.endpointId));
type Joined = { delivery: DeliveryRow; eventName: string; event: string };
const flat = ({ delivery, ...event }: Joined): ShownDelivery => ({ ...delivery, ...event });

/** Newest first, up to `limit` + 1. */
export async function listDeliveries(
  db: Db,
  caller: Caller,
  filter: DeliveryFilter,
  page: { limit: number; before: number | undefined },
): Promise<ShownDelivery[]> {
  const rows = await shown(db)
    .where(and(matching(caller, filter), page.before === undefined ? undefined : lt(deliveries.id, page.before)))
    .orderBy(desc(deliveries.id))
    .limit(page.limit + 1)
    .all();
  return rows.map(flat);
}

/** One of an endpoint's deliveries. */
export async function getDelivery(
  db: Db,
  caller: Caller,
  at: { endpointId: number; id: number },
): Promise<ShownDelivery | undefined> {
  const row = await shown(db)
    .where(and(matching(caller, { endpointId: at.endpointId }), eq(deliveries.id, at.id)))
    .orderBy(asc(deliveries.id))
    .get();
  return row && flat(row);
}
