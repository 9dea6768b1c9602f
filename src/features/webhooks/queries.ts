import { and, asc, count, desc, eq, gte, isNull, lt, lte, type SQL, sql } from "drizzle-orm";
import type { App } from "#app.ts";
import { type Caller, ownedBy, ownerOf } from "#platform/http/caller.ts";
import { readPage } from "#platform/http/list-cache.ts";
import { type Batches, inWindows, WINDOW_ROWS } from "#platform/http/paging.ts";
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

/**
 * The conditions of a filter, over deliveries joined with their events and endpoints. Plus signs keep SQLite from choosing
 * the index of the tenant where that of the endpoint has fewer rows.
 */
export const matching = (caller: Caller, filter: DeliveryFilter): SQL | undefined =>
  and(
    ...[ownerOf(caller), filter.tenantId].map((tenantId) => {
      if (tenantId === undefined) return undefined;
      return filter.endpointId === undefined
        ? eq(deliveries.tenantId, tenantId)
        : sql`+${deliveries.tenantId} = ${tenantId}`;
    }),
    isNull(endpoints.deletedAt),
    filter.endpointId === undefined ? undefined : eq(deliveries.endpointId, filter.endpointId),
    // Not a parameter: only then is the partial index of failed ones used. It is a value of the enumeration.
    filter.status && sql`${deliveries.status} = ${sql.raw(`'${filter.status}'`)}`,
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

/**
 * Deliveries that a filter selects, newest first. Only the endpoint and the tenant have an index, so that more is a search in
 * windows of ids.
 */
export function listDeliveries(
  db: Db,
  caller: Caller,
  filter: DeliveryFilter,
  before: number | undefined,
): Batches<DeliveryWithEvent> {
  const { endpointId } = filter;
  const tenantId = filter.tenantId ?? ownerOf(caller);
  const indexed =
    endpointId !== undefined
      ? eq(deliveries.endpointId, endpointId)
      : tenantId !== undefined && eq(deliveries.tenantId, tenantId);
  return inWindows<DeliveryWithEvent, number>({
    from: before,
    keyOf: ({ id }) => id,
    endOf: async (after) =>
      (
        await db
          .select({ id: deliveries.id })
          .from(deliveries)
          .where(and(indexed || undefined, after === undefined ? undefined : lt(deliveries.id, after)))
          .orderBy(desc(deliveries.id))
          .limit(1)
          .offset(WINDOW_ROWS - 1)
          .get()
      )?.id,
    read: async ({ after, until }, limit) => {
      const isWithin = and(
        after === undefined ? undefined : lt(deliveries.id, after),
        until === undefined ? undefined : gte(deliveries.id, until),
      );
      const rows = await deliveryRows(db)
        .where(and(matching(caller, filter), isWithin))
        .orderBy(desc(deliveries.id))
        .limit(limit)
        .all();
      return rows.map(flat);
    },
  });
}

/** Whether a filter has more than an index, and is a search. */
export const isSearch = ({ endpointId, tenantId, ...others }: DeliveryFilter): boolean =>
  (endpointId !== undefined && tenantId !== undefined) || Object.values(others).some((value) => value !== undefined);

/** The same expression as in the index events_by_asset. */
const assetOfEvent = sql`json_extract(${events.data}, '$.asset_id')`;

/** A place among the deliveries of an asset: an event, and a delivery of it, which is 0 behind all of them. */
export type AssetDeliveryPlace = [eventId: number, id: number];

/**
 * Deliveries of the events of an asset that the caller may access. The newest event is first: this is the order of one index,
 * but events may have no deliveries, or none of the status.
 */
export function listAssetDeliveries(
  db: Db,
  { id: assetId, tenantId }: Pick<AssetRow, "id" | "tenantId">,
  { status, from }: { status: DeliveryRow["status"] | undefined; from: AssetDeliveryPlace | undefined },
): Batches<DeliveryWithEvent> {
  // The plus sign keeps SQLite from choosing the index of the tenant instead.
  const ofAsset = sql`${assetOfEvent} = ${String(assetId)} and +${events.tenantId} = ${tenantId}`;
  return inWindows<DeliveryWithEvent, AssetDeliveryPlace>({
    from,
    keyOf: ({ eventId, id }) => [eventId, id],
    async endOf(after) {
      const row = await db
        .select({ id: events.id })
        .from(events)
        .where(and(ofAsset, after && lt(events.id, after[0])))
        .orderBy(desc(events.id))
        .limit(1)
        .offset(WINDOW_ROWS - 1)
        .get();
      return row && [row.id, 0];
    },
    async read({ after, until }, limit) {
      const isWithin = and(
        after && lte(events.id, after[0]),
        after && sql`(${events.id}, ${deliveries.id}) < (${after[0]}, ${after[1]})`,
        until && gte(events.id, until[0]),
      );
      const rows = await deliveryRows(db)
        .where(and(ofAsset, isNull(endpoints.deletedAt), status && eq(deliveries.status, status), isWithin))
        .orderBy(desc(events.id), desc(deliveries.id))
        .limit(limit)
        .all();
      return rows.map(flat);
    },
  });
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
