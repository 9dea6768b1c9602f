import * as v from "valibot";
import { PLAYBACK_POLICIES } from "#model/enums.ts";
import { oneOf, Text } from "#protocol/fields.ts";

export { ByteCount, Id, Name, NullableTime, oneOf, Sha256, Text, Time, whole } from "#protocol/fields.ts";

/** Schemas that several resources share. */

/** A positive integer in a path. Any other value identifies nothing: 404. */
export const PathId = v.pipe(
  v.string(),
  v.regex(/^[1-9]\d{0,14}$/),
  v.metadata({ openapi: { type: "integer", minimum: 1 } }),
  v.transform(Number),
);
const YEAR_10000 = Date.UTC(10_000, 0);
/**
 * A time from a client. ISO 8601 has forms that RFC 3339 and Date do not support; NaN would compare false with
 * everything.
 */
export const ClientTime = v.pipe(
  v.string("must be a time"),
  v.isoTimestamp("must be an RFC 3339 time"),
  v.check((time) => Date.parse(time) < YEAR_10000, "must be an RFC 3339 time"),
);
export const PlaybackPolicy = v.pipe(
  oneOf(PLAYBACK_POLICIES),
  v.description("`public`: anyone with the URL may play; `signed`: a token is required"),
);

const wholeNumber = (min: number, max: number) =>
  v.pipe(
    v.string(),
    v.regex(/^\d{1,15}$/, "must be a whole number"),
    v.metadata({ openapi: { type: "integer", minimum: min, maximum: max } }),
    v.transform(Number),
    v.minValue(min, `must be at least ${min}`),
    v.maxValue(max, `must be at most ${max}`),
  );
export const QueryId = wholeNumber(0, Number.MAX_SAFE_INTEGER);
const MAX_IDS = 100;
/** Ids in one parameter of a query, each once. */
export const QueryIds = v.pipe(
  Text(2000),
  v.regex(/^[1-9]\d{0,14}(,[1-9]\d{0,14})*$/, "must be ids, separated by commas"),
  v.transform((list) => [...new Set(list.split(",").map(Number))]),
  v.maxLength(MAX_IDS, `must be at most ${MAX_IDS} ids`),
  v.description(`Ids of assets, separated by commas, at most ${MAX_IDS}`),
);
export const PageLimit = wholeNumber(1, 500);
export const Paging = {
  limit: v.optional(v.pipe(PageLimit, v.description("1 to 500; without it, up to 1,000 records are returned"))),
  cursor: v.optional(v.pipe(Text(2000), v.description("Cursor from the Link header of the previous page"))),
};
