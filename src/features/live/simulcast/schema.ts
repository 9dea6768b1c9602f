import * as v from "valibot";
import { TARGET_STATUS } from "#live/simulcast/messages.ts";
import { RecordIdInPath } from "#platform/http/parameters.ts";
import { Name, NullableTime, PathId, Text } from "#platform/http/schemas.ts";
import { describedAs } from "#protocol/fields.ts";
import {
  ChannelId,
  CreatedAt,
  NameField,
  RecordId,
  TargetId,
  TenantIdField,
  UpdatedAt,
} from "#protocol/record-fields.ts";

const MAX_KEY = 1000;

const entries = {
  url: v.pipe(
    Name(2000),
    v.description("rtmp or rtmps URL with the application; without stream_key, its last part is the stream key"),
  ),
  stream_key: v.pipe(
    Text(MAX_KEY),
    v.regex(/^[\x21-\x7e]+$/, "must have at least one character, and only printable ASCII without spaces"),
    v.description("Stream key of the other server; stored encrypted and never returned"),
  ),
  name: v.pipe(Name(255), v.description("Default: the host of the URL")),
  enabled: v.pipe(v.boolean("must be true or false"), v.description("Whether streams are sent to it")),
};

export const TargetWrite = v.object({
  url: entries.url,
  stream_key: v.optional(entries.stream_key),
  name: v.optional(entries.name),
  enabled: v.optional(entries.enabled, true),
});
export const TargetPatch = v.object({
  url: v.optional(
    v.pipe(entries.url, v.description("A new URL needs the stream key too, in stream_key or at its end")),
  ),
  stream_key: v.optional(entries.stream_key),
  name: v.optional(entries.name),
  enabled: v.optional(entries.enabled),
});
export const TargetParams = v.object({ id: RecordIdInPath, target_id: describedAs(TargetId, PathId) });

export const SimulcastTarget = v.pipe(
  v.object({
    id: RecordId,
    tenant_id: TenantIdField,
    channel_id: ChannelId,
    name: NameField,
    url: v.pipe(v.string(), v.description("Without the stream key")),
    enabled: entries.enabled,
    status: v.pipe(
      v.nullable(v.picklist(["idle", ...TARGET_STATUS])),
      v.description(
        "idle: nothing is sent; failed: it is tried again while the channel is live; null: another server receives the stream",
      ),
    ),
    status_changed_at: v.pipe(NullableTime, v.description("Since when it has this status; null when idle")),
    error: v.pipe(v.nullable(v.string()), v.description("Why nothing is sent, and what to do; null without a fault")),
    sent_bytes: v.pipe(v.number(), v.description("Bytes sent during this stream")),
    dropped_frames: v.pipe(
      v.number(),
      v.description("Frames that were not sent during this stream, because the target was too slow"),
    ),
    created_at: CreatedAt,
    updated_at: UpdatedAt,
  }),
  v.title("SimulcastTarget"),
);
