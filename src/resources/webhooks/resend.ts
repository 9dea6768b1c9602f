import { and, asc, eq, gt, inArray } from "drizzle-orm";
import type { Db } from "../../../storage/db/open.ts";
import {
  webhookDeliveries as deliveries,
  type EndpointRow,
  webhookEndpoints as endpoints,
  events,
} from "../../../storage/db/schema.ts";
import type { App } from "../../app.ts";
import { EVENT_TYPES, type EventType } from "../../events/catalog.ts";
import { fanOut, insertEvent } from "../../events/emit.ts";
import { SAMPLES } from "../../events/samples.ts";
import type { Caller } from "../../http/caller.ts";
import { notFound } from "../../lib/errors.ts";
import { type DeliveryFilter, getDelivery, getEndpoint, matching } from "./queries.ts";
import type { ShownDelivery } from "./schema.ts";

/** Replayed by one call, so that no transaction grows with what matches; a dry run only reads. */
const REPLAY_BATCH = 500;
const DRY_BATCH = 2000;

/** Due now, with all its tries anew; of the same event, under the same id. What is on its way already stays claimed. */
const anew = (now: number) =>
  ({ status: "pending", tries: 0, nextAttemptAt: now, updatedAt: now }) satisfies Partial<
    typeof deliveries.$inferInsert
  >;
/** To a paused endpoint nothing is sent. */
const skippedAt = (now: number) =>
  ({ status: "skipped", nextAttemptAt: null, claimedUntil: null, updatedAt: now }) satisfies Partial<
    typeof deliveries.$inferInsert
  >;

/** One delivery of the caller's endpoint, once more. */
export async function resend(
  tx: Db,
  app: App,
  caller: Caller,
  at: { endpointId: number; id: number },
): Promise<ShownDelivery> {
  const endpoint = (await getEndpoint(tx, caller, at.endpointId)) ?? notFound("webhook");
  const { id } = (await getDelivery(tx, caller, at)) ?? notFound("delivery");
  const now = app.clock.now();
  const change = endpoint.active ? anew(now) : skippedAt(now);
  await tx.update(deliveries).set(change).where(eq(deliveries.id, id));
  return (await getDelivery(tx, caller, at)) ?? notFound("delivery");
}

/** An event of a type that the endpoint wants, for it alone. It tells that it is a test. */
export async function sendTest(tx: Db, app: App, caller: Caller, endpointId: number): Promise<ShownDelivery> {
  const endpoint = (await getEndpoint(tx, caller, endpointId)) ?? notFound("webhook");
  const now = app.clock.now();
  const type = testType(endpoint);
  const eventId = await insertEvent(tx, {
    tenantId: endpoint.tenantId,
    type,
    data: { ...SAMPLES[type], test: true },
    now,
  });
  const made = await tx
    .insert(deliveries)
    .values({
      tenantId: endpoint.tenantId,
      endpointId,
      eventId,
      ...(endpoint.active ? anew(now) : skippedAt(now)),
      createdAt: now,
    })
    .returning({ id: deliveries.id })
    .get();
  return (await getDelivery(tx, caller, { endpointId, id: made.id })) ?? notFound("delivery");
}

function testType({ eventTypes }: EndpointRow): EventType {
  const wanted = EVENT_TYPES.filter((type) => eventTypes.length === 0 || eventTypes.includes(type));
  return wanted.includes("video.asset.ready") ? "video.asset.ready" : (wanted[0] ?? "video.asset.ready");
}

export type Replay = { ids: readonly string[] | undefined; filter: DeliveryFilter; dryRun: boolean; after: number };
export type ReplayResult = {
  matched: number;
  replayed: number;
  paused: number;
  unknown: string[];
  last: number | null;
};

/** The first batch of what matches behind `after`, in the order of their making; deliveries of paused endpoints are left. */
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
  if (!dryRun) await tx.update(deliveries).set(anew(app.clock.now())).where(inArray(deliveries.id, due));
  return {
    matched: batch.length,
    replayed: dryRun ? 0 : due.length,
    paused: batch.length - due.length,
    unknown: named?.unknown ?? [],
    last: batch.length < limit ? null : (batch.at(-1)?.id ?? null),
  };
}

/** Numbers of deliveries; an event stands for all of its. One that nobody wanted goes to those who want it now. */
async function resolveIds(
  tx: Db,
  app: App,
  caller: Caller,
  { ids, dryRun }: { ids: readonly string[]; dryRun: boolean },
): Promise<{ deliveryIds: number[]; unknown: string[] }> {
  const deliveryIds: number[] = [];
  const unknown: string[] = [];
  const ofEvent = (eventId: number) =>
    tx.select({ id: deliveries.id }).from(deliveries).where(eq(deliveries.eventId, eventId)).all();
  for (const id of new Set(ids)) {
    if (!id.startsWith("evt_")) {
      const number = Number(id.replace("whd_", ""));
      const found = await tx
        .select({ id: deliveries.id })
        .from(deliveries)
        .innerJoin(events, eq(events.id, deliveries.eventId))
        .innerJoin(endpoints, eq(endpoints.id, deliveries.endpointId))
        .where(and(matching(caller, {}), eq(deliveries.id, number)))
        .get();
      if (found) deliveryIds.push(found.id);
      else unknown.push(id);
      continue;
    }
    const event = await tx.select({ id: events.id }).from(events).where(eq(events.eventId, id)).get();
    if (!event) {
      unknown.push(id);
      continue;
    }
    let found = await ofEvent(event.id);
    if (found.length === 0 && !dryRun) {
      await fanOut(tx, event.id, app.clock.now());
      found = await ofEvent(event.id);
    }
    deliveryIds.push(...found.map((each) => each.id));
  }
  return { deliveryIds, unknown };
}
