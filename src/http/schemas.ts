import * as v from "valibot";

/** Shapes that several resources share. */

/** A positive integer in a path. What is none names nothing: 404. */
export const PathId = v.pipe(
  v.string(),
  v.regex(/^[1-9]\d{0,14}$/),
  v.metadata({ openapi: { type: "integer", minimum: 1 } }),
  v.transform(Number),
);
export const Id = v.pipe(v.number("must be an integer"), v.integer("must be an integer"));
export const ByteCount = v.pipe(
  v.number("must be an integer"),
  v.integer("must be an integer"),
  v.minValue(0, "must not be negative"),
  v.maxValue(Number.MAX_SAFE_INTEGER, "is too large"),
);
/** No NUL: SQLite's own tools cut text there. */
export const Text = (max: number) =>
  v.pipe(
    v.string("must be a string"),
    v.maxLength(max, `must have at most ${max} characters`),
    v.check((value) => !value.includes("\0"), "must not hold a NUL character"),
    v.check((value) => value.isWellFormed(), "must be well-formed Unicode"),
  );
export const Name = (max: number) =>
  v.pipe(
    Text(max),
    v.check((value) => value.trim() !== "", "must not be blank"),
  );
export const Time = v.pipe(v.string(), v.isoTimestamp());
const YEAR_10000 = Date.UTC(10_000, 0);
/** A time that a client gives. ISO 8601 has forms that RFC 3339 and Date do not know; NaN is before nothing. */
export const GivenTime = v.pipe(
  v.string("must be a time"),
  v.isoTimestamp("must be an RFC 3339 time"),
  v.check((time) => Date.parse(time) < YEAR_10000, "must be an RFC 3339 time"),
);
const NullableTime = v.nullable(Time);

export { NullableTime };
export const Sha256 = v.pipe(
  v.string("must be a string"),
  v.regex(/^[0-9a-f]{64}$/i, "must be 64 hexadecimal digits"),
  v.toLowerCase(),
);
export const PlaybackPolicy = v.picklist(["public", "signed"], "must be public or signed");

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
export const Paging = {
  limit: v.optional(v.pipe(wholeNumber(1, 500), v.description("1 to 500; without it up to 1,000 records"))),
  cursor: v.optional(v.pipe(Text(2000), v.description("From the Link header of the page before"))),
};
