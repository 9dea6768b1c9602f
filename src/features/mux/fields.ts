import { isDeepStrictEqual } from "node:util";
import * as v from "valibot";
import { Text } from "#protocol/fields.ts";
import { invalidParameter, NOT_SUPPORTED } from "./errors.ts";

export { Text };

/** Schemas for requests in Mux's form. Nothing is ignored: an unknown field is a fault. */

/** An object that has no other fields. */
export const fields = <const T extends v.ObjectEntries>(entries: T) =>
  v.strictObject(entries, ({ expected }) =>
    expected === "never" ? "is not a parameter of this request" : "must be an object",
  );

export const Flag = v.boolean("must be true or false");
export const Seconds = v.pipe(
  v.number("must be a number"),
  v.finite("must be a number"),
  v.minValue(0, "must be at least 0"),
);

/** The value of a setting that has several names. Throws 400 where they contradict each other; undefined without any. */
export function sameOf<T>(given: Readonly<Record<string, T | undefined>>): T | undefined {
  const [first, ...others] = Object.entries(given).filter(([, value]) => value !== undefined);
  for (const [name, value] of others)
    if (!isDeepStrictEqual(value, first?.[1])) invalidParameter(name, `contradicts ${first?.[0]}`);
  return first?.[1];
}

/** A field that has a counterpart for some values only, such as the default of Mux. */
export const only = (...values: readonly unknown[]) =>
  v.optional(
    v.pipe(
      v.unknown(),
      v.check(
        (value) => value === undefined || values.some((one) => JSON.stringify(one) === JSON.stringify(value)),
        NOT_SUPPORTED,
      ),
    ),
  );

/** A field without a counterpart. */
export const nothing = only();

/** One of `supported`; `others` are values of Mux without a counterpart. */
export const choice = <const T extends string>(supported: readonly T[], others: readonly string[] = []) =>
  v.pipe(
    v.picklist([...supported, ...others], `must be one of ${[...supported, ...others].join(", ")}`),
    v.check((value) => (supported as readonly string[]).includes(value), NOT_SUPPORTED),
    v.transform((value) => value as T),
  );

export const Policy = choice(["public", "signed"], ["drm"]);
/** An array, or one value for an array of one. `wrap`: makes an item of the value. */
export const listOf = <const T extends v.GenericSchema<unknown, unknown>>(
  item: T,
  max: number,
  wrap: (one: unknown) => unknown = (one) => one,
) =>
  v.pipe(
    v.unknown(),
    v.transform((value) => (Array.isArray(value) ? value : [wrap(value)])),
    v.check((list) => list.length <= max, `must have at most ${max} entries`),
    v.array(item),
  );

export const Passthrough = Text(255);
export const Meta = fields({
  title: v.optional(Text(512)),
  creator_id: v.optional(Text(128)),
  external_id: v.optional(Text(128)),
});

/** A number in a query. */
const Whole = (min: number, max: number) =>
  v.pipe(
    v.string(),
    v.regex(/^\d{1,9}$/, "must be a whole number"),
    v.transform(Number),
    v.minValue(min, `must be at least ${min}`),
    v.maxValue(max, `must be at most ${max}`),
  );
export const MAX_LIMIT = 100;
export const Paging = {
  limit: v.optional(Whole(1, MAX_LIMIT), "25"),
  page: v.optional(Whole(1, 1_000_000), "1"),
  cursor: v.optional(v.pipe(v.string(), v.maxLength(5000))),
};
