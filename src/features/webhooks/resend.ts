import { and, asc, eq, gt, inArray } from "drizzle-orm";
import type { App } from "#app.ts";
import { notFound } from "#lib/base";
import { DEFAULT_EVENT_TYPES, EVENT_TYPES, EVENTS, type EventType } from "#platform/events/catalog.ts";
import { fanOut, insertEvent, wakeDispatcher } from "#platform/events/emit.ts";
import { fromMuxName } from "#platform/events/mux-names.ts";
import type { Caller } from "#platform/http/caller.ts";
import type { Db } from "#storage/db/open.ts";
import {
  webhookDeliveries as deliveries,
  type EndpointRow,
  webhookEndpoints as endpoints,
  events,
} from "#storage/db/schema.ts";
import { type DeliveryFilter, getDelivery, getEndpoint, matching } from "./queries.ts";
import type { DeliveryWithEvent } from "./schema.ts";

/** Deliveries replayed by one request, which bounds its transaction; a dry run only reads. */
const REPLAY_BATCH = 500;
const DRY_BATCH = 2000;

/** Due now, with all attempts; of the same event, under the same id. A delivery in progress stays claimed. */
const resetDelivery = (now: number) =>
  ({ status: "pending", tries: 0, nextAttemptAt: now, updatedAt: now }) satisfies Partial<
    typeof deliveries.$inferInsert
  >;
/** A paused endpoint receives nothing. */
const skippedAt = (now: number) =>
  ({ status: "skipped", nextAttemptAt: null, claimedUntil: null, updatedAt: now }) satisfies Partial<
    typeof deliveries.$inferInsert
  >;

/** Replays one delivery of the caller's endpoint. */
export async function resend(
  tx: Db,
  app: App,
  caller: Caller,
  at: { endpointId: number; id: number },
): Promise<DeliveryWithEvent> {
  const endpoint = (await getEndpoint(tx, caller, at.endpointId)) ?? notFound("webhook");
  const { id } = (await getDelivery(tx, caller, at)) ?? notFound("delivery");
  const now = app.clock.now();
  const change = endpoint.active ? resetDelivery(now) : skippedAt(now);
  await tx.update(deliveries).set(change).where(eq(deliveries.id, id));
  wakeDispatcher(tx, app);
  return (await getDelivery(tx, caller, at)) ?? notFound("delivery");
}

/**
 * Sends a test event of a type that the endpoint is subscribed to, only to this endpoint. Its payload says that it is a
 * test.
 */
export async function sendTest(tx: Db, app: App, caller: Caller, endpointId: number): Promise<DeliveryWithEvent> {
  const endpoint = (await getEndpoint(tx, caller, endpointId)) ?? notFound("webhook");
  const now = app.clock.now();
  const { type, name } = testOf(endpoint);
  const data = { ...EVENTS[type].sample, test: true };
  const eventId = await insertEvent(tx, app, { tenantId: endpoint.tenantId, type, data });
  wakeDispatcher(tx, app);
  const inserted = await tx
    .insert(deliveries)
    .values({
      tenantId: endpoint.tenantId,
      endpointId,
      eventId,
      name,
      ...(endpoint.active ? resetDelivery(now) : skippedAt(now)),
      createdAt: now,
    })
    .returning({ id: deliveries.id })
    .get();
  return (await getDelivery(tx, caller, { endpointId, id: inserted.id })) ?? notFound("delivery");
}

/** `name`: of the event in Mux's form. */
function testOf(endpoint: EndpointRow): { type: EventType; name: string | null } {
  if (endpoint.format !== "mux") return { type: testType(endpoint), name: null };
  const name =
    endpoint.eventTypes.find((one) => one === "video.asset.ready") ?? endpoint.eventTypes[0] ?? "video.asset.ready";
  return { type: fromMuxName(name)[0] ?? "video.asset.ready", name };
}

function testType({ eventTypes }: EndpointRow): EventType {
  const subscribed =
    eventTypes.length === 0 ? DEFAULT_EVENT_TYPES : EVENT_TYPES.filter((type) => eventTypes.includes(type));
  return subscribed.includes("video.asset.ready") ? "video.asset.ready" : (subscribed[0] ?? "video.asset.ready");
}

export type Replay = { ids: readonly string[] | undefined; filter: DeliveryFilter; dryRun: boolean; after: number };
export type ReplayResult = {
  matched: number;
  replayed: number;
  paused: number;
  unknown: string[];
  last: number | null;
};

/** The first batch of matches after `after`, in order of creation; deliveries of paused endpoints are skipped. */
export async function replay(
  tx: Db,
  app: App,
  caller: Caller,
  { ids, filter, dryRun, after }: Replay,
): Promise<ReplayResult> {
  const named = ids && (await resolveIds(tx, app, caller, { ids, dryRun }));
  const where = and(
    matching(caller, filter),
    gt(deliveries.id, after),
    named && inArray(deliveries.id, named.deliveryIds),
  );
  const limit = dryRun ? DRY_BATCH : REPLAY_BATCH;
  const batch = await tx
    .select({ id: deliveries.id, active: endpoints.active })
    .from(deliveries)
    .innerJoin(events, eq(events.id, deliveries.eventId))
    .innerJoin(endpoints, eq(endpoints.id, deliveries.endpointId))
    .where(where)
    .orderBy(asc(deliveries.id))
    .limit(limit)
    .all();
  const due = batch.filter((row) => row.active).map((row) => row.id);
  if (!dryRun) {
    await tx.update(deliveries).set(resetDelivery(app.clock.now())).where(inArray(deliveries.id, due));
    wakeDispatcher(tx, app);
  }
  return {
    matched: batch.length,
    replayed: dryRun ? 0 : due.length,
    paused: batch.length - due.length,
    unknown: named?.unknown ?? [],
    last: batch.length < limit ? null : (batch.at(-1)?.id ?? null),
  };
}

/**
 * Ids of deliveries; an event selects all of its deliveries, and with a name of Mux's those of that name. An event without deliveries goes to the endpoints that are
 * subscribed now.
 */
async function resolveIds(
  tx: Db,
  app: App,
  caller: Caller,
  { ids, dryRun }: { ids: readonly string[]; dryRun: boolean },
): Promise<{ deliveryIds: number[]; unknown: string[] }> {
  const deliveryIds: number[] = [];
  const unknown: string[] = [];
  const ofEvent = (eventId: number, name: string | undefined) =>
    tx
      .select({ id: deliveries.id })
      .from(deliveries)
      .where(and(eq(deliveries.eventId, eventId), name === undefined ? undefined : eq(deliveries.name, name)))
      .all();
  for (const id of new Set(ids)) {
    if (!id.startsWith("evt_")) {
      const number = Number(id.replace("whd_", ""));
      const rows = await tx
        .select({ id: deliveries.id })
        .from(deliveries)
        .innerJoin(events, eq(events.id, deliveries.eventId))
        .innerJoin(endpoints, eq(endpoints.id, deliveries.endpointId))
        .where(and(matching(caller, {}), eq(deliveries.id, number)))
        .get();
      if (rows) deliveryIds.push(rows.id);
      else unknown.push(id);
      continue;
    }
    const [eventId = "", name] = id.split("-");
    const event = await tx.select({ id: events.id }).from(events).where(eq(events.eventId, eventId)).get();
    let eventDeliveries = event ? await ofEvent(event.id, name) : [];
    if (!event || (name !== undefined && eventDeliveries.length === 0)) {
      unknown.push(id);
      continue;
    }
    if (eventDeliveries.length === 0 && !dryRun) {
      await fanOut(tx, app, event.id);
      eventDeliveries = await ofEvent(event.id, name);
    }
    deliveryIds.push(...eventDeliveries.map((each) => each.id));
  }
  return { deliveryIds, unknown };
}
