import * as v from "valibot";
import { DISABLED_REASONS, WEBHOOK_DELIVERY_STATUSES, WEBHOOK_FORMATS } from "#model/enums.ts";
import { EVENT_TYPES, EVENTS, type EventType } from "#platform/events/catalog.ts";
import { ONLY_MUX_NAMES } from "#platform/events/mux-names.ts";
import { toRecord } from "#platform/http/records.ts";
import { Id, Name, NullableTime, oneOf, Paging, PathId, QueryId, Text, Time } from "#platform/http/schemas.ts";
import type { DeliveryRow, EndpointRow } from "#storage/db/schema.ts";

const EventName = v.picklist(EVENT_TYPES, `must be among ${EVENT_TYPES.join(", ")}`);

/** Those of Mux are for its format alone. */
const AnyEventName = v.picklist(
  [...EVENT_TYPES, ...ONLY_MUX_NAMES],
  `must be among ${EVENT_TYPES.join(", ")}; with the format mux also ${ONLY_MUX_NAMES.join(", ")}`,
);

const eventOf = (type: EventType) =>
  v.pipe(
    v.object({
      id: v.pipe(v.string(), v.description("The same in repeated deliveries")),
      event: v.literal(type),
      type: v.pipe(v.literal(type), v.description("The same as `event`, for code that was written for other services")),
      created_at: Time,
      tenant_id: v.number(),
      data: EVENTS[type].schema as v.GenericSchema<unknown, object>,
    }),
    v.description(EVENTS[type].description),
  );
/** What an endpoint receives. */
export const WebhookEvent = v.pipe(v.union(EVENT_TYPES.map(eventOf)), v.title("WebhookEvent"));

const Url = v.pipe(Name(2000), v.description("https URL"));
const eventTypes = (about: string) =>
  v.pipe(
    v.array(AnyEventName, "must be an array of event names"),
    v.transform((names) => [...new Set(names)]),
    v.description(about),
  );
const Format = v.pipe(oneOf(WEBHOOK_FORMATS), v.description("`mux`: names, bodies and signature as Mux has them"));
const Description = v.optional(v.nullable(Text(1000)));
export const EndpointWrite = v.object({
  tenant_id: v.optional(Id),
  url: Url,
  description: Description,
  format: v.optional(Format, "svc"),
  event_types: v.optional(eventTypes("Omitted or empty: all events but those that must be named"), []),
});
export const EndpointPatch = v.object({
  url: v.optional(Url),
  description: Description,
  format: v.optional(Format),
  event_types: v.optional(eventTypes("Empty: all events but those that must be named")),
});
export const EndpointParams = v.object({ id: PathId });
export const ActiveWrite = v.object({ active: v.boolean("must be true or false") });

export const Endpoint = v.pipe(
  v.object({
    id: v.number(),
    tenant_id: v.number(),
    url: v.string(),
    description: v.nullable(v.string()),
    format: Format,
    event_types: v.pipe(v.array(v.string()), v.description("Empty: all events but those that must be named")),
    active: v.boolean(),
    failure_count: v.pipe(v.number(), v.description("Consecutive failed attempts")),
    failing_since: NullableTime,
    disabled_at: NullableTime,
    disabled_reason: v.nullable(v.picklist(DISABLED_REASONS)),
    last_delivery_at: v.pipe(NullableTime, v.description("Time of the last successful attempt")),
    created_at: Time,
    updated_at: Time,
  }),
  v.title("WebhookEndpoint"),
);
const Secret = v.pipe(v.string(), v.description("Signing secret; returned once, not by a replayed request"));
export const NewEndpoint = v.object({ ...Endpoint.entries, secret: v.optional(Secret) });
export const RotatedEndpoint = v.object({
  ...Endpoint.entries,
  secret: Secret,
  previous_secret_expires_at: v.pipe(Time, v.description("Until then, deliveries are also signed with the old secret")),
});

export const toEndpoint = (row: EndpointRow) => toRecord(Endpoint, row);

/** A delivery id: its number, or the number after `whd_`. Returns the number. */
const DeliveryRef = v.pipe(
  v.string(),
  v.regex(/^(whd_)?[1-9]\d{0,14}$/),
  v.transform((ref) => Number(ref.replace("whd_", ""))),
);
export const DeliveryParams = v.object({ id: PathId, delivery_id: DeliveryRef });

const OptionalTime = (about: string) =>
  v.pipe(
    Text(40),
    v.check((time) => !Number.isNaN(Date.parse(time)), "must be an RFC 3339 time"),
    v.transform((time) => Date.parse(time)),
    v.description(about),
  );
const Status = v.picklist(WEBHOOK_DELIVERY_STATUSES, `must be among ${WEBHOOK_DELIVERY_STATUSES.join(", ")}`);
export const DeliveryQuery = v.object({
  ...Paging,
  status: v.optional(Status),
  event: v.optional(EventName),
});
export const AssetDeliveryParams = v.object({ id: PathId });
export const AssetDeliveryQuery = v.object({ ...Paging, status: v.optional(Status) });
/** Ids of an event and a delivery: where a page of an asset's deliveries begins. */
export const AssetDeliveryKey = v.strictTuple([v.pipe(v.number(), v.integer()), v.pipe(v.number(), v.integer())]);
/** Filters for the operator, over all tenants. */
export const AllDeliveriesQuery = v.object({
  ...DeliveryQuery.entries,
  tenant_id: v.optional(QueryId),
  endpoint_id: v.optional(QueryId),
  since: v.optional(OptionalTime("Events from then on")),
  until: v.optional(OptionalTime("Events before this time")),
});

const ReplayId = v.pipe(
  v.union([v.string(), v.number()], "must be a delivery or event id"),
  v.transform(String),
  v.regex(
    // The second delivery of an event in Mux's form has its name in its id.
    /^((whd_)?[1-9]\d{0,14}|evt_[A-Za-z0-9]{1,60}(-[a-z_.]{1,60})?)$/,
    "must be a delivery id (whd_… or a number) or an event id (evt_…)",
  ),
);
export const ReplayWrite = v.object({
  ids: v.optional(
    v.pipe(
      v.array(ReplayId),
      v.minLength(1, "must contain at least one"),
      v.maxLength(100, "must contain at most 100"),
    ),
  ),
  status: v.optional(Status),
  tenant_id: v.optional(Id),
  endpoint_id: v.optional(Id),
  event: v.optional(EventName),
  since: v.optional(OptionalTime("Events from then on")),
  until: v.optional(OptionalTime("Events before this time")),
  dry_run: v.optional(v.boolean(), false),
  after: v.optional(v.pipe(Id, v.description("`last` of the previous response, to continue"))),
});
export const ResendFailed = v.object({
  after: v.optional(v.pipe(Id, v.description("`last` of the previous response, to continue"))),
});
export const Resent = v.object({
  matched: v.pipe(v.number(), v.description("Failed deliveries in this batch, at most 500")),
  resent: v.pipe(v.number(), v.description("Queued again with all attempts")),
  paused: v.pipe(v.number(), v.description("Left as they are, because the endpoint is paused")),
  last: v.pipe(v.nullable(v.number()), v.description("Pass it as `after` to continue; null at the end")),
});
export const Replayed = v.object({
  matched: v.pipe(
    v.number(),
    v.description("Deliveries that this call looked at: those that are named, from `after` on"),
  ),
  replayed: v.pipe(v.number(), v.description("Number of deliveries resent; 0 in a dry run")),
  paused: v.pipe(v.number(), v.description("Skipped because their endpoint is paused")),
  unknown: v.pipe(v.array(v.string()), v.description("Ids that do not exist")),
  last: v.pipe(v.nullable(v.number()), v.description("Pass it as `after` to continue; null at the end")),
});

export const Delivery = v.pipe(
  v.object({
    id: v.number(),
    delivery_id: v.pipe(v.string(), v.description("The same id with the prefix whd_")),
    tenant_id: v.number(),
    endpoint_id: v.number(),
    event_id: v.string(),
    event: v.string(),
    status: v.picklist(WEBHOOK_DELIVERY_STATUSES),
    attempts: v.number(),
    next_attempt_at: NullableTime,
    last_attempt_at: NullableTime,
    delivered_at: NullableTime,
    response_status: v.nullable(v.number()),
    response_body: v.pipe(v.nullable(v.string()), v.description("First 1 KiB of the response")),
    duration_ms: v.nullable(v.number()),
    error: v.nullable(v.object({ code: v.string(), message: v.string() })),
    created_at: Time,
    updated_at: Time,
  }),
  v.title("WebhookDelivery"),
);

export const DeliveryDetails = v.object({
  ...Delivery.entries,
  request: v.pipe(
    v.object({
      method: v.literal("POST"),
      url: v.pipe(v.string(), v.description("The present URL of the endpoint")),
      headers: v.pipe(
        v.record(v.string(), v.string()),
        v.description("Without the timestamp and the signatures, which differ at each attempt"),
      ),
      body: v.pipe(v.string(), v.description("The same bytes at each attempt")),
    }),
    v.description("What each attempt sends"),
  ),
});

/** A delivery with a summary of its event. */
export type DeliveryWithEvent = DeliveryRow & { eventName: string; event: string };

export const toDelivery = (row: DeliveryWithEvent) =>
  toRecord(Delivery, row, {
    delivery_id: `whd_${row.id}`,
    event_id: row.eventName,
    error: row.errorCode === null ? null : { code: row.errorCode, message: row.errorMessage ?? "" },
  });
