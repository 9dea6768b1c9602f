import * as v from "valibot";
import { MAX_PARTS } from "#model/multipart.ts";
import { shownLine, shownLines } from "#model/shown-text.ts";

/** `schema` with the description of `field`: the same value in another form, such as a parameter or an optional field. */
export const describedAs = <S extends v.GenericSchema>(field: v.GenericSchema, schema: S) =>
  v.pipe(schema, v.description(v.getDescription(field) ?? ""));

/** Fields that several messages share. */

export const Id = v.pipe(v.number("must be an integer"), v.integer("must be an integer"));
export const ByteCount = v.pipe(
  v.number("must be an integer"),
  v.integer("must be an integer"),
  v.minValue(0, "must not be negative"),
  v.maxValue(Number.MAX_SAFE_INTEGER, "is too large"),
);
/** At most `max` characters, which are code points, as `maxLength` of JSON Schema counts them: most emoji are one. */
export const maxCharacters = (max: number) => {
  const action = v.maxLength<string, number, string>(max, `must have at most ${max} characters`);
  const run: (typeof action)["~run"] = (dataset, config) =>
    dataset.typed && hasAtMost(dataset.value, max) ? dataset : action["~run"](dataset, config);
  return { ...action, "~run": run };
};
/** A text of n code points has n to 2n units of UTF-16. */
const hasAtMost = (text: string, max: number) =>
  text.length <= max || (text.length <= 2 * max && [...text].length <= max);

/** No NUL: SQLite's tools truncate text there. */
export const Text = (max: number) =>
  v.pipe(
    v.string("must be a string"),
    maxCharacters(max),
    v.check((value) => !value.includes("\0"), "must not contain a NUL character"),
    v.check((value) => value.isWellFormed(), "must be well-formed Unicode"),
  );
/** A whole key of an object. */
export const Key = Text(900);
/** What a program reports for people: control characters are replaced. A description belongs here: later ones are of the output. */
export const Shown = (max: number, description?: string) =>
  description === undefined
    ? v.pipe(Text(max), v.transform(shownLine))
    : v.pipe(Text(max), v.description(description), v.transform(shownLine));
/** The same with lines. */
export const ShownLines = (max: number) => v.pipe(Text(max), v.transform(shownLines));
export const Name = (max: number) =>
  v.pipe(
    Text(max),
    v.check((value) => value.trim() !== "", "must not be blank"),
  );
/** A choice from a client: the message names all values. */
export const oneOf = <const T extends readonly string[]>(values: T) =>
  v.picklist(values, `must be ${[values.slice(0, -1).join(", "), values.at(-1)].filter(Boolean).join(" or ")}`);
export const Time = v.pipe(v.string(), v.isoTimestamp());
export const NullableTime = v.nullable(Time);
export const Sha256 = v.pipe(
  v.string("must be a string"),
  v.regex(/^[0-9a-f]{64}$/i, "must be 64 hexadecimal digits"),
  v.toLowerCase(),
);
export const MediaType = v.pipe(
  v.string("must be a string"),
  v.regex(/^[\w.+-]{1,100}\/[\w.+-]{1,100}(;[ -~]{0,100})?$/, "must be a media type such as video/mp4"),
);
export const whole = (max: number, min = 1) =>
  v.pipe(
    v.number("must be an integer"),
    v.integer("must be an integer"),
    v.minValue(min, `must be at least ${min}`),
    v.maxValue(max, `must be at most ${max}`),
  );
export const PartNumber = whole(MAX_PARTS);
/** HTTP headers of a request to a presigned URL. */
export const SignedHeaders = v.record(v.string(), v.string());
