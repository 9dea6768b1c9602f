import { and, asc, count, desc, eq, gte, isNull, lt, lte, type SQL, sql } from "drizzle-orm";
import type { App } from "#app.ts";
import { type Caller, ownedBy, ownerOf } from "#platform/http/caller.ts";
import { readPage } from "#platform/http/list-cache.ts";
import type { Db } from "#storage/db/open.ts";
import { type Given, preparedFor } from "#storage/db/prepared.ts";
import {
  type AssetRow,
  type DeliveryRow,
  webhookDeliveries as deliveries,
  type EndpointRow,
  webhookEndpoints as endpoints,
  events,
} from "#storage/db/schema.ts";
import type { DeliveryWithEvent } from "./schema.ts";

/** The caller's endpoint; one that is being deleted no longer exists. */
export const getEndpoint = (db: Db, caller: Caller, id: number): Promise<EndpointRow | undefined> =>
  db
    .select()
    .from(endpoints)
    .where(and(eq(endpoints.id, id), isNull(endpoints.deletedAt), ownedBy(caller, endpoints.tenantId)))
    .get();

const endpointsPage = preparedFor((db, given: Given<"owner" | "tenantId" | "after">) =>
  db
    .select()
    .from(endpoints)
    .where(
      and(
        isNull(endpoints.deletedAt),
        given.owner && eq(endpoints.tenantId, given.owner),
        given.tenantId && eq(endpoints.tenantId, given.tenantId),
        given.after && lt(endpoints.id, given.after),
      ),
    )
    .orderBy(desc(endpoints.id))
    .limit(sql.placeholder("limit"))
    .prepare(),
);

/** Newest first, up to `limit` + 1. */
export const listEndpoints = (
  app: App,
  caller: Caller,
  { limit, ...page }: { limit: number; after: number | undefined; tenantId: number | undefined },
): Promise<EndpointRow[]> => readPage(app, endpointsPage, { owner: ownerOf(caller), ...page, limit: limit + 1 });

export const countEndpoints = async (db: Db, tenantId: number): Promise<number> => {
  const ownEndpoints = and(eq(endpoints.tenantId, tenantId), isNull(endpoints.deletedAt));
  return (await db.select({ count: count() }).from(endpoints).where(ownEndpoints).get())?.count ?? 0;
};

export type DeliveryFilter = {
  tenantId?: number | undefined;
  endpointId?: number | undefined;
  status?: DeliveryRow["status"] | undefined;
  event?: string | undefined;
  /** Time of the event, in milliseconds. */
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

const deliveryRows = (db: Db) =>
  db
    .select({ delivery: deliveries, eventName: events.eventId, event: events.type })
    .from(deliveries)
    .innerJoin(events, eq(events.id, deliveries.eventId))
    .innerJoin(endpoints, eq(endpoints.id, deliveries.endpointId));
type Joined = { delivery: DeliveryRow; eventName: string; event: string };
const flat = ({ delivery, ...event }: Joined): DeliveryWithEvent => ({ ...delivery, ...event });

/** Newest first, up to `limit` + 1. */
export async function listDeliveries(
  db: Db,
  caller: Caller,
  filter: DeliveryFilter,
  page: { limit: number; before: number | undefined },
): Promise<DeliveryWithEvent[]> {
  const rows = await deliveryRows(db)
    .where(and(matching(caller, filter), page.before === undefined ? undefined : lt(deliveries.id, page.before)))
    .orderBy(desc(deliveries.id))
    .limit(page.limit + 1)
    .all();
  return rows.map(flat);
}

/** The same expression as in the index events_by_asset. */
const assetOfEvent = sql`json_extract(${events.data}, '$.asset_id')`;

/**
 * Deliveries of the events of an asset that the caller may access, up to `limit` + 1. The newest event is first: this
 * order and the filter are those of one index, so a page reads only its own rows.
 */
export async function listAssetDeliveries(
  db: Db,
  { id: assetId, tenantId }: Pick<AssetRow, "id" | "tenantId">,
  page: { limit: number; status: DeliveryRow["status"] | undefined; after: readonly [number, number] | undefined },
): Promise<DeliveryWithEvent[]> {
  const [eventId, id] = page.after ?? [];
  const isBelow =
    eventId === undefined
      ? undefined
      : and(lte(events.id, eventId), sql`(${events.id}, ${deliveries.id}) < (${eventId}, ${id})`);
  const rows = await deliveryRows(db)
    .where(
      and(
        sql`${assetOfEvent} = ${String(assetId)}`,
        // The plus sign keeps SQLite from choosing the index of the tenant instead.
        sql`+${events.tenantId} = ${tenantId}`,
        isNull(endpoints.deletedAt),
        page.status && eq(deliveries.status, page.status),
        isBelow,
      ),
    )
    .orderBy(desc(events.id), desc(deliveries.id))
    .limit(page.limit + 1)
    .all();
  return rows.map(flat);
}

/** A delivery of an endpoint. */
export async function getDelivery(
  db: Db,
  caller: Caller,
  at: { endpointId: number; id: number },
): Promise<DeliveryWithEvent | undefined> {
  const row = await deliveryRows(db)
    .where(and(matching(caller, { endpointId: at.endpointId }), eq(deliveries.id, at.id)))
    .orderBy(asc(deliveries.id))
    .get();
  return row && flat(row);
}

/** The event of a delivery and the URL of its endpoint, for what an attempt sends. `data` is JSON. */
export const getDeliveredEvent = (
  db: Db,
  deliveryId: number,
): Promise<{ url: string; createdAt: number; data: string } | undefined> =>
  db
    .select({ url: endpoints.url, createdAt: events.createdAt, data: sql<string>`${events.data}` })
    .from(deliveries)
    .innerJoin(events, eq(events.id, deliveries.eventId))
    .innerJoin(endpoints, eq(endpoints.id, deliveries.endpointId))
    .where(eq(deliveries.id, deliveryId))
    .get();
