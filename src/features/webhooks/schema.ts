import * as v from "valibot";
import { DISABLED_REASONS, WEBHOOK_DELIVERY_STATUSES, WEBHOOK_FORMATS } from "#model/enums.ts";
import { EVENT_TYPES, EVENTS, type EventType } from "#platform/events/catalog.ts";
import { ONLY_MUX_NAMES } from "#platform/events/mux-names.ts";
import { RecordIdInPath, TenantIdInQuery } from "#platform/http/parameters.ts";
import { toRecord } from "#platform/http/records.ts";
import { Id, Name, NullableTime, oneOf, Paging, QueryId, Text, Time } from "#platform/http/schemas.ts";
import { describedAs } from "#protocol/fields.ts";
import {
  CodeField,
  CreatedAt,
  DescriptionField,
  DryRun,
  ErrorField,
  EventField,
  MessageField,
  MethodField,
  RecordId,
  StatusField,
  TenantIdField,
  TenantIdFromClient,
  UpdatedAt,
} from "#protocol/record-fields.ts";
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
      event: describedAs(EventField, v.literal(type)),
      type: v.pipe(v.literal(type), v.description("The same as `event`, for code that was written for other services")),
      created_at: CreatedAt,
      tenant_id: TenantIdField,
      data: v.pipe(EVENTS[type].schema as v.GenericSchema<unknown, object>, v.description("The event's data")),
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
  tenant_id: v.optional(TenantIdFromClient),
  url: Url,
  description: describedAs(DescriptionField, Description),
  format: v.optional(Format, "svc"),
  event_types: v.optional(eventTypes("Omitted or empty: all events but those that must be named"), []),
});
export const EndpointPatch = v.object({
  url: v.optional(Url),
  description: describedAs(DescriptionField, Description),
  format: v.optional(Format),
  event_types: v.optional(eventTypes("Empty: all events but those that must be named")),
});
export const EndpointParams = v.object({ id: RecordIdInPath });
const ActiveField = v.pipe(v.boolean(), v.description("Whether events are delivered"));
export const ActiveWrite = v.object({ active: describedAs(ActiveField, v.boolean("must be true or false")) });

export const Endpoint = v.pipe(
  v.object({
    id: RecordId,
    tenant_id: TenantIdField,
    url: v.pipe(v.string(), v.description("https URL that events are sent to")),
    description: v.nullable(DescriptionField),
    format: Format,
    event_types: v.pipe(v.array(v.string()), v.description("Empty: all events but those that must be named")),
    active: ActiveField,
    failure_count: v.pipe(v.number(), v.description("Consecutive failed attempts")),
    failing_since: v.pipe(
      NullableTime,
      v.description("Time of the first of the failures in a row; null without failures"),
    ),
    disabled_at: v.pipe(NullableTime, v.description("Time at which the endpoint was disabled; null while active")),
    disabled_reason: v.pipe(
      v.nullable(v.picklist(DISABLED_REASONS)),
      v.description("Why the endpoint was disabled; null while active"),
    ),
    last_delivery_at: v.pipe(NullableTime, v.description("Time of the last successful attempt")),
    created_at: CreatedAt,
    updated_at: UpdatedAt,
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
export const DeliveryParams = v.object({
  id: RecordIdInPath,
  delivery_id: v.pipe(DeliveryRef, v.description("Id of the delivery")),
});

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
  status: describedAs(StatusField, v.optional(Status)),
  event: describedAs(EventField, v.optional(EventName)),
});
export const AssetDeliveryParams = v.object({ id: RecordIdInPath });
export const AssetDeliveryQuery = v.object({ ...Paging, status: describedAs(StatusField, v.optional(Status)) });
/** Ids of an event and a delivery: where a page of an asset's deliveries begins. */
export const AssetDeliveryKey = v.strictTuple([v.pipe(v.number(), v.integer()), v.pipe(v.number(), v.integer())]);
const EndpointId = v.pipe(v.number(), v.description("Id of the webhook endpoint"));
/** Filters for the operator, over all tenants. */
export const AllDeliveriesQuery = v.object({
  ...DeliveryQuery.entries,
  tenant_id: v.optional(TenantIdInQuery),
  endpoint_id: describedAs(EndpointId, v.optional(QueryId)),
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
  ids: v.pipe(
    v.optional(
      v.pipe(
        v.array(ReplayId),
        v.minLength(1, "must contain at least one"),
        v.maxLength(100, "must contain at most 100"),
      ),
    ),
    v.description("Ids of deliveries or events"),
  ),
  status: describedAs(StatusField, v.optional(Status)),
  tenant_id: v.optional(TenantIdFromClient),
  endpoint_id: describedAs(EndpointId, v.optional(Id)),
  event: describedAs(EventField, v.optional(EventName)),
  since: v.optional(OptionalTime("Events from then on")),
  until: v.optional(OptionalTime("Events before this time")),
  dry_run: v.optional(DryRun, false),
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
    id: RecordId,
    delivery_id: v.pipe(v.string(), v.description("The same id with the prefix whd_")),
    tenant_id: TenantIdField,
    endpoint_id: EndpointId,
    event_id: v.pipe(v.string(), v.description("Id of the event, the same in repeated deliveries")),
    event: EventField,
    status: describedAs(StatusField, v.picklist(WEBHOOK_DELIVERY_STATUSES)),
    attempts: v.pipe(v.number(), v.description("Number of attempts so far")),
    next_attempt_at: v.pipe(NullableTime, v.description("Time of the next attempt; null without one")),
    last_attempt_at: v.pipe(NullableTime, v.description("Time of the last attempt; null before the first")),
    delivered_at: v.pipe(NullableTime, v.description("Time of the successful attempt; null before")),
    response_status: v.pipe(
      v.nullable(v.number()),
      v.description("HTTP status of the endpoint's response; null without one"),
    ),
    response_body: v.pipe(v.nullable(v.string()), v.description("First 1 KiB of the response")),
    duration_ms: v.pipe(v.nullable(v.number()), v.description("Duration of the attempt in milliseconds")),
    error: describedAs(ErrorField, v.nullable(v.object({ code: CodeField, message: MessageField }))),
    created_at: CreatedAt,
    updated_at: UpdatedAt,
  }),
  v.title("WebhookDelivery"),
);

export const DeliveryDetails = v.object({
  ...Delivery.entries,
  request: v.pipe(
    v.object({
      method: describedAs(MethodField, v.literal("POST")),
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
