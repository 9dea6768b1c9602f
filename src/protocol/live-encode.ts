import * as v from "valibot";
import { describedAs, Text } from "./fields.ts";
import {
  ChannelField,
  HeightField,
  NameField,
  RecordId,
  SchemaVersion,
  WaitSeconds,
  WidthField,
  WorkerIdField,
} from "./record-fields.ts";

/** The renditions of a running live stream, as the server offers them and a worker encodes them. */

const whole = (min: number, max: number) => v.pipe(v.number(), v.integer(), v.minValue(min), v.maxValue(max));
const MAX_SIDE = 16_384;

/** Holds the request like that for a job. */
export const LiveClaim = v.object({
  worker_id: describedAs(WorkerIdField, v.optional(Text(200))),
  version: v.optional(v.pipe(Text(100), v.description("Of the worker's program"))),
  wait_seconds: v.optional(WaitSeconds),
});
export type LiveClaim = v.InferInput<typeof LiveClaim>;

export const LiveRendition = v.object({
  name: describedAs(NameField, v.pipe(v.string(), v.maxLength(100))),
  width: describedAs(WidthField, whole(16, MAX_SIDE)),
  height: describedAs(HeightField, whole(16, MAX_SIDE)),
  max_bitrate: v.pipe(whole(1000, 1_000_000_000), v.description("bit/s")),
  buffer: v.pipe(whole(1000, 2_000_000_000), v.description("Of the decoder, in bits")),
  crf: v.pipe(v.number(), v.minValue(0), v.maxValue(51), v.description("Constant rate factor of the encoder")),
});
export type LiveRendition = v.InferOutput<typeof LiveRendition>;

/** Everything that a worker needs to encode the renditions of a stream while it runs. */
export const LiveContract = v.object({
  schema_version: SchemaVersion,
  id: describedAs(RecordId, v.string()),
  channel: ChannelField,
  renditions: v.pipe(
    v.array(LiveRendition),
    v.minLength(1),
    v.maxLength(8),
    v.description("H.264, largest first: the tracks of the output, in this order"),
  ),
  lease_token: v.pipe(v.string(), v.description("For both URLs, which can be used once")),
  input_url: v.pipe(
    v.string(),
    v.description("GET: the video of the publisher, a fragmented MP4 file that grows while the stream runs"),
  ),
  output_url: v.pipe(
    v.string(),
    v.description("POST: takes a fragmented MP4 file of all renditions while it is encoded"),
  ),
});
export type LiveContract = v.InferOutput<typeof LiveContract>;
