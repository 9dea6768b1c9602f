import * as v from "valibot";
import { DELIVERY_STATUS, type DeliveryRow, type EndpointRow } from "../../../storage/db/schema.ts";
import { EVENT_TYPES } from "../../events/catalog.ts";
import { Id, Name, NullableTime, Paging, PathId, QueryId, Text, Time } from "../../http/schemas.ts";
import { iso } from "../../lib/clock.ts";

const EventName = v.picklist(EVENT_TYPES, `must be among ${EVENT_TYPES.join(", ")}`);

export const EndpointWrite = v.object({
  tenant_id: v.optional(Id),
  url: v.pipe(Name(2000), v.description("An https address")),
  description: v.optional(v.nullable(Text(1000))),
  event_types: v.optional(
    v.pipe(
      v.array(EventName, "must be an array of event names"),
      v.transform((names) => [...new Set(names)]),
      v.description("Left out or empty: every event"),
    ),
    [],
  ),
});
export const EndpointParams = v.object({ id: PathId });
export const ActiveWrite = v.object({ active: v.boolean("must be true or false") });

export const Endpoint = v.pipe(
  v.object({
    id: v.number(),
    tenant_id: v.number(),
    url: v.string(),
    description: v.nullable(v.string()),
    event_types: v.pipe(v.array(v.string()), v.description("Empty: every event")),
    active: v.boolean(),
    failure_count: v.pipe(v.number(), v.description("Failed attempts since one succeeded")),
    failing_since: NullableTime,
    disabled_at: NullableTime,
    disabled_reason: v.nullable(v.picklist(["gone", "failing"])),
    last_delivery_at: v.pipe(NullableTime, v.description("When an attempt last succeeded")),
    created_at: Time,
    updated_at: Time,
  }),
  v.title("WebhookEndpoint"),
);
const Secret = v.pipe(v.string(), v.description("The signing secret, in this answer alone; a repeat has none"));
export const NewEndpoint = v.object({ ...Endpoint.entries, secret: v.optional(Secret) });
export const RotatedEndpoint = v.object({
  ...Endpoint.entries,
  secret: Secret,
  previous_secret_expires_at: v.pipe(Time, v.description("Until then the old secret signs as well")),
});

export const toEndpoint = (row: EndpointRow): v.InferInput<typeof Endpoint> => ({
  id: row.id,
  tenant_id: row.tenantId,
  url: row.url,
  description: row.description,
  event_types: row.eventTypes,
  active: row.active,
  failure_count: row.failureCount,
  failing_since: iso(row.failingSince),
  disabled_at: iso(row.disabledAt),
  disabled_reason: row.disabledReason,
  last_delivery_at: iso(row.lastDeliveryAt),
  created_at: iso(row.createdAt),
  updated_at: iso(row.updatedAt),
});

/** A delivery as it is named: its number, or the number behind `whd_`. Gives the number. */
const DeliveryRef = v.pipe(
  v.string(),
  v.regex(/^(whd_)?[1-9]\d{0,14}$/),
  v.transform((ref) => Number(ref.replace("whd_", ""))),
);
export const DeliveryParams = v.object({ id: PathId, delivery_id: DeliveryRef });

const GivenMoment = (about: string) =>
  v.pipe(
    Text(40),
    v.check((time) => !Number.isNaN(Date.parse(time)), "must be an RFC 3339 time"),
    v.transform((time) => Date.parse(time)),
    v.description(about),
  );
const Status = v.picklist(DELIVERY_STATUS, `must be among ${DELIVERY_STATUS.join(", ")}`);
export const DeliveryQuery = v.object({
  ...Paging,
  status: v.optional(Status),
  event: v.optional(EventName),
});
/** Filters of the operator, over all tenants. */
export const AllDeliveriesQuery = v.object({
  ...DeliveryQuery.entries,
  tenant_id: v.optional(QueryId),
  endpoint_id: v.optional(QueryId),
  since: v.optional(GivenMoment("Events from then on")),
  until: v.optional(GivenMoment("Events before then")),
});

const ReplayId = v.pipe(
  v.union([v.string(), v.number()], "must be a delivery or event id"),
  v.transform(String),
  v.regex(
    /^((whd_)?[1-9]\d{0,14}|evt_[A-Za-z0-9]{1,60})$/,
    "must be a delivery id (whd_… or a number) or an event id (evt_…)",
  ),
);
export const ReplayWrite = v.object({
  ids: v.optional(
    v.pipe(v.array(ReplayId), v.minLength(1, "must hold at least one"), v.maxLength(100, "must hold at most 100")),
  ),
  status: v.optional(Status),
  tenant_id: v.optional(Id),
  endpoint_id: v.optional(Id),
  event: v.optional(EventName),
  since: v.optional(GivenMoment("Events from then on")),
  until: v.optional(GivenMoment("Events before then")),
  dry_run: v.optional(v.boolean(), false),
  after: v.optional(v.pipe(Id, v.description("`last` of the answer before: the rest"))),
});
export const Replayed = v.object({
  matched: v.pipe(
    v.number(),
    v.description("Deliveries that this call looked at: those that are named, from `after` on"),
  ),
  replayed: v.pipe(v.number(), v.description("Of these, sent anew; none in a dry run")),
  paused: v.pipe(v.number(), v.description("Left alone, since their endpoint is paused")),
  unknown: v.pipe(v.array(v.string()), v.description("Ids that name nothing")),
  last: v.pipe(v.nullable(v.number()), v.description("Give it as `after` for the rest; null when there is none")),
});

export const Delivery = v.pipe(
  v.object({
    id: v.number(),
    delivery_id: v.pipe(v.string(), v.description("The same id, told from other numbers: whd_…")),
    tenant_id: v.number(),
    endpoint_id: v.number(),
    event_id: v.string(),
    event: v.string(),
    status: v.picklist(DELIVERY_STATUS),
    attempts: v.number(),
    next_attempt_at: NullableTime,
    last_attempt_at: NullableTime,
    delivered_at: NullableTime,
    response_status: v.nullable(v.number()),
    response_body: v.pipe(v.nullable(v.string()), v.description("Its beginning, up to 1 KiB")),
    duration_ms: v.nullable(v.number()),
    error: v.nullable(v.object({ code: v.string(), message: v.string() })),
    created_at: Time,
    updated_at: Time,
  }),
  v.title("WebhookDelivery"),
);

/** A delivery with what is told of its event. */
export type ShownDelivery = DeliveryRow & { eventName: string; event: string };

export const toDelivery = (row: ShownDelivery): v.InferInput<typeof Delivery> => ({
  id: row.id,
  delivery_id: `whd_${row.id}`,
  tenant_id: row.tenantId,
  endpoint_id: row.endpointId,
  event_id: row.eventName,
  event: row.event,
  status: row.status,
  attempts: row.attempts,
  next_attempt_at: iso(row.nextAttemptAt),
  last_attempt_at: iso(row.lastAttemptAt),
  delivered_at: iso(row.deliveredAt),
  response_status: row.responseStatus,
  response_body: row.responseBody,
  duration_ms: row.durationMs,
  error: row.errorCode === null ? null : { code: row.errorCode, message: row.errorMessage ?? "" },
  created_at: iso(row.createdAt),
  updated_at: iso(row.updatedAt),
});
