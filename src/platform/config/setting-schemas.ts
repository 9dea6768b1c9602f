import { isIP } from "node:net";
import * as v from "valibot";

/** Schemas that several settings share. Texts are those of environment variables. */

export const text = v.pipe(v.string(), v.trim(), v.minLength(1, "must not be empty"));
const isRange = (range: string) => {
  const [address = "", bits, ...rest] = range.split("/");
  const widest = isIP(address) === 6 ? 128 : 32;
  return (
    rest.length === 0 &&
    isIP(address) !== 0 &&
    (bits === undefined || (/^\d{1,3}$/.test(bits) && Number(bits) <= widest))
  );
};
export const oneOf = <const T extends string[]>(...values: T) =>
  v.picklist(values, `must be one of ${values.join(", ")}`);
export const integer = (min: number, max: number) =>
  v.pipe(
    v.union([v.number(), v.string()], "must be a whole number"),
    v.transform((value) =>
      typeof value === "number" ? value : /^\s*-?\d+\s*$/.test(value) ? Number(value) : Number.NaN,
    ),
    v.integer("must be a whole number"),
    v.minValue(min, `must be at least ${min}`),
    v.maxValue(max, `must be at most ${max}`),
  );
export const token = v.pipe(text, v.minLength(16, "must have at least 16 characters"));
export const url = (...protocols: string[]) =>
  v.pipe(
    text,
    v.check(
      (value) => URL.canParse(value) && protocols.includes(new URL(value).protocol),
      `must be a URL that starts with ${protocols.map((p) => `${p}//`).join(" or ")}`,
    ),
  );
export const flag = v.pipe(
  v.union([v.boolean(), v.string()]),
  v.transform(String),
  v.picklist(["0", "1", "true", "false"], "must be 0 or 1"),
  v.transform((x) => x === "1" || x === "true"),
);
export const rate = v.pipe(
  text,
  v.regex(/^\d{1,9}\/\d{1,9}$/, "must be REQUESTS/SECONDS, such as 120/60"),
  v.transform((value) => {
    const [requests = 0, seconds = 0] = value.split("/").map(Number);
    return { requests, seconds };
  }),
  v.check(
    ({ requests, seconds }) => requests > 0 && seconds > 0,
    "must allow at least one request in at least one second",
  ),
);

const items = v.pipe(
  v.union([v.string(), v.array(v.union([v.string(), v.number()]))]),
  v.transform((value) =>
    String(value)
      .split(",")
      .map((item) => item.trim())
      .filter(Boolean),
  ),
);
export const list = v.pipe(
  items,
  v.check((ranges) => ranges.every(isRange), "must be a comma-separated list of CIDR ranges such as 10.0.0.0/8"),
);
export const addresses = v.pipe(
  items,
  v.check(
    (all) => all.every((address) => isIP(address) !== 0),
    "must be a comma-separated list of IP addresses such as 203.0.113.7",
  ),
);
export const waits = v.pipe(
  items,
  v.check(
    (parts) => parts.length === 5 && parts.every((part) => /^\d{1,7}$/.test(part)),
    "must be five delays in seconds, such as 5,300,1800,7200,18000",
  ),
  v.transform((parts) => parts.map(Number)),
);
