import * as v from "valibot";
import { TEXT_TRACK_STATUSES } from "#model/enums.ts";
import { AssetIdInPath, RecordIdInPath } from "#platform/http/parameters.ts";
import { toRecord } from "#platform/http/records.ts";
import { Name, oneOf, Paging, Text } from "#platform/http/schemas.ts";
import { describedAs } from "#protocol/fields.ts";
import {
  AssetId,
  CreatedAt,
  EndMs,
  KindField,
  NameField,
  PositionField,
  ProducerField,
  RecordId,
  SourceField,
  StartMs,
  StatusField,
  StorageKey,
  UpdatedAt,
} from "#protocol/record-fields.ts";
import type { TrackRow } from "#storage/db/schema.ts";

/** Tracks of one asset. Those of a clip, which are cut in one transaction, are fewer. */
export const MAX_TRACKS = 1000;
export const MAX_CUES = 500;
export const MAX_CUE_BYTES = 200_000;
/** The advice for inline cues beyond a limit. */
export const USE_STORAGE_KEY = `Inline cues are capped at ${MAX_CUES} entries and ${MAX_CUE_BYTES} bytes; store larger data in your own bucket and set its storage_key.`;

export const Kind = v.pipe(
  v.string("must be a string"),
  v.regex(/^[a-z0-9_]{1,40}$/, "must be 1 to 40 characters of a-z 0-9 _, such as chapter, scene, marker or index"),
);
export const Status = oneOf(TEXT_TRACK_STATUSES);
const Position = v.pipe(
  v.number("must be an integer"),
  v.integer("must be an integer"),
  v.minValue(-(2 ** 31), "is too small"),
  v.maxValue(2 ** 31, "is too large"),
);
const Milliseconds = v.pipe(
  v.number("must be an integer"),
  v.integer("must be an integer"),
  v.minValue(0, "must not be negative"),
  v.maxValue(Number.MAX_SAFE_INTEGER, "is too large"),
);
/** Stored as received: v.record would drop keys that valibot considers dangerous. */
const AnyObject = v.pipe(
  v.unknown(),
  v.check((value) => typeof value === "object" && value !== null && !Array.isArray(value), "must be an object"),
  v.metadata({ openapi: { type: "object", additionalProperties: true } }),
);
const MAX_DEPTH = 64;

/** JSON.stringify recurses once per level, and would overflow the stack. */
function isDeeperThan(value: unknown, most: number): boolean {
  let level = [value];
  for (let depth = 0; level.length > 0; depth++) {
    if (depth > most) return true;
    level = level.flatMap((each) => (typeof each === "object" && each !== null ? Object.values(each) : []));
  }
  return false;
}

const Payload = v.pipe(
  AnyObject,
  v.check((value) => !isDeeperThan(value, MAX_DEPTH), `must be nested at most ${MAX_DEPTH} levels deep`),
  v.transform((value) => value as Record<string, unknown>),
);
const PayloadField = v.pipe(AnyObject, v.description("Content of the cue"));
export const Cue = v.pipe(
  v.object(
    {
      start_ms: describedAs(StartMs, Milliseconds),
      end_ms: describedAs(EndMs, v.exactOptional(Milliseconds)),
      payload: describedAs(PayloadField, Payload),
    },
    "must be an object with start_ms and payload",
  ),
  v.check(({ start_ms, end_ms }) => end_ms === undefined || end_ms >= start_ms, "end_ms must not be before start_ms"),
);
/** The handler checks the number of cues before it validates each of them. */
const Cues = v.pipe(v.array(Cue, "must be an array"), v.metadata({ errorCode: "cues_malformed" }));

const fields = {
  position: describedAs(PositionField, v.optional(Position)),
  cues: v.pipe(v.optional(v.nullable(Cues)), v.description("Intervals with their content, by start")),
  storage_key: describedAs(StorageKey, v.optional(v.nullable(Name(1024)))),
  source: describedAs(SourceField, v.optional(v.nullable(Text(200)))),
  producer: describedAs(ProducerField, v.optional(v.nullable(Text(200)))),
};
const TrackName = Name(200);
export const TrackWrite = v.object({
  kind: describedAs(KindField, Kind),
  name: describedAs(NameField, v.optional(TrackName, "default")),
  status: describedAs(StatusField, v.optional(Status, "ready")),
  ...fields,
});
export const TrackPatch = v.object({
  kind: describedAs(KindField, v.optional(Kind)),
  name: describedAs(NameField, v.optional(TrackName)),
  status: describedAs(StatusField, v.optional(Status)),
  ...fields,
});
export const TrackQuery = v.object({
  ...Paging,
  kind: describedAs(KindField, v.optional(Kind)),
  status: describedAs(StatusField, v.optional(Status)),
});
export const AssetParams = v.object({ video_asset_id: AssetIdInPath });
export const TrackParams = v.object({ video_asset_id: AssetIdInPath, id: RecordIdInPath });

export const Track = v.pipe(
  v.object({
    id: RecordId,
    asset_id: AssetId,
    kind: KindField,
    name: NameField,
    position: PositionField,
    status: describedAs(StatusField, Status),
    cues: v.pipe(
      v.nullable(v.array(v.object({ start_ms: StartMs, end_ms: v.optional(EndMs), payload: PayloadField }))),
      v.description("Intervals with their content, by start"),
    ),
    storage_key: v.nullable(StorageKey),
    source: v.nullable(SourceField),
    producer: v.nullable(ProducerField),
    created_at: CreatedAt,
    updated_at: UpdatedAt,
  }),
  v.title("Track"),
);

export const toTrack = (row: TrackRow) => toRecord(Track, row);
