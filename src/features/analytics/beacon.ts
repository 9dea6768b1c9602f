import * as v from "valibot";
import { HttpError } from "#lib/base";
import { ClientTime, Id, Name, Text } from "#platform/http/schemas.ts";
import { validate } from "#platform/http/validate.ts";
import { describedAs } from "#protocol/fields.ts";
import { AssetId, EventField, ExternalIdField } from "#protocol/record-fields.ts";
import { OccurredAt, PositionSeconds, StartupMs, WatchedSeconds } from "./record-fields.ts";

export const MAX_BEACON_BYTES = 64 * 1024;
export const MAX_EVENTS = 64;
/** Longer than any film; larger values are clamped. */
const MAX_SECONDS = 10_000_000;

const VIEW_EVENTS = [
  "play",
  "playing",
  "pause",
  "heartbeat",
  "seeking",
  "seeked",
  "rebufferstart",
  "rebufferend",
  "renditionchange",
  "ended",
  "error",
] as const;

const amount = (most: number) =>
  v.nullish(
    v.pipe(
      v.number("must be a number"),
      v.finite("must be finite"),
      v.minValue(0, "must not be negative"),
      v.transform((value) => Math.min(value, most)),
    ),
  );

/** An event from a player. One of `asset_id`, `external_id` and `live_channel` is required; numbers may be sent as text. */
export const Beacon = v.pipe(
  v.object({
    asset_id: describedAs(AssetId, v.nullish(v.union([Id, Text(128)], "must be an integer or a string"))),
    external_id: describedAs(ExternalIdField, v.nullish(Text(128))),
    live_channel: v.nullish(v.pipe(Text(128), v.description("Name of a live channel, in place of an asset"))),
    session_id: v.pipe(Name(128), v.description("Id of one playback by one viewer, chosen by the player")),
    viewer_id: v.pipe(
      v.nullish(Text(128)),
      v.description("Id of the viewer, chosen by the site; without it each session is a viewer"),
    ),
    event: describedAs(EventField, v.picklist(VIEW_EVENTS, `must be one of ${VIEW_EVENTS.join(", ")}`)),
    position_seconds: describedAs(PositionSeconds, amount(MAX_SECONDS)),
    watched_seconds: describedAs(WatchedSeconds, amount(MAX_SECONDS)),
    startup_ms: describedAs(StartupMs, amount(MAX_SECONDS * 1000)),
    occurred_at: describedAs(OccurredAt, v.nullish(ClientTime)),
    referrer: v.pipe(
      v.nullish(Text(2048)),
      v.description("URL or host of the page with the player; only the host is stored. Default: the Referer header"),
    ),
    token: v.pipe(
      v.nullish(Text(4096)),
      v.description("Playback token; required for signed assets, otherwise the event is dropped"),
    ),
  }),
  v.title("PlaybackEvent"),
);
const Batch = v.object({
  events: v.pipe(
    v.array(Beacon, "must be a list"),
    v.maxLength(MAX_EVENTS, `must have at most ${MAX_EVENTS} playback events`),
    v.description("Events"),
  ),
  token: v.pipe(v.nullish(Text(4096)), v.description("Default for events without a token")),
});
/**
 * For the OpenAPI document; `parseBeacons` distinguishes the two, so that an error names the field of the form that was
 * used.
 */
export const BeaconBody = v.union([Beacon, Batch]);

export type PlaybackEvent = v.InferOutput<typeof Beacon>;

const isBatched = (body: unknown): body is { events: unknown } =>
  typeof body === "object" && body !== null && Object.hasOwn(body, "events");

/** The number of events in a body that has not been validated. */
export const batchSize = (body: unknown) => (isBatched(body) && Array.isArray(body.events) ? body.events.length : 1);

/** One event, or `{events: […]}`. Throws 422. */
export function parseBeacons(body: unknown): PlaybackEvent[] {
  const isBatch = isBatched(body);
  const events = isBatch ? ofBatch(validate(Batch, body, "body")) : [validate(Beacon, body, "body")];
  const nameless = events.findIndex((event) => !event.live_channel && assetRef(event) === "");
  if (nameless !== -1) {
    const field = isBatch ? `events.${nameless}.asset_id` : "asset_id";
    const problem = "is required, or external_id or live_channel";
    throw new HttpError(422, "parameter_missing", `${field}: ${problem}`, { details: { [field]: [problem] } });
  }
  return events;
}

const ofBatch = ({ events, token }: v.InferOutput<typeof Batch>) =>
  events.map((event) => ({ ...event, token: event.token ?? token }));

/** The id that public pages use for an asset. */
export const assetRef = (event: PlaybackEvent) => String(event.asset_id ?? event.external_id ?? "");
