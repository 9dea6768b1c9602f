import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { parse as parseToml } from "smol-toml";
import * as v from "valibot";
import { scaled } from "./decimal.ts";

/** Decimal places of a price or an included quantity. */
export const PRICE_PLACES = 6;

const MAX_MINOR = 100_000_000;
const MAX_UNIT_PRICE = 1_000_000;
const MAX_INCLUDED = 1_000_000_000;

const amount = (most: number) =>
  v.pipe(
    v.number("must be a number"),
    v.check(
      (value) => scaled(value, PRICE_PLACES) !== null && value <= most,
      `must be a decimal from 0 to ${most} with at most ${PRICE_PLACES} places`,
    ),
  );
const whole = (most: number) =>
  v.pipe(
    v.number("must be a whole number"),
    v.check(
      (value) => Number.isSafeInteger(value) && value >= 0 && value <= most,
      `must be a whole number from 0 to ${most}`,
    ),
  );
const Meter = v.strictObject({ included: amount(MAX_INCLUDED), unit_price_minor: amount(MAX_UNIT_PRICE) });
/** TOML has no null: an omitted quota means unlimited. */
const quota = v.optional(v.nullable(whole(Number.MAX_SAFE_INTEGER)), null);
const Quotas = v.strictObject({
  storage_bytes: quota,
  transcoding_minutes: quota,
  /** Streams at once, and bit/s of each. */
  live_streams: quota,
  live_bitrate: quota,
});
const Plan = v.strictObject({
  monthly_price_minor: v.optional(v.nullable(whole(MAX_MINOR)), null),
  storage_gb_month: Meter,
  egress_gb: Meter,
  transcoding_minute: Meter,
  /** Null: live streams cost only storage and egress, and estimates do not list them. */
  live_minute: v.optional(v.nullable(Meter), null),
  quotas: v.optional(Quotas, {}),
});
const isCurrency = (code: string) => /^[A-Z]{3}$/.test(code) && Intl.supportedValuesOf("currency").includes(code);
const Sheet = v.strictObject({
  currency: v.pipe(v.string("must be a string"), v.check(isCurrency, "must be an ISO 4217 currency code such as EUR")),
  plans: v.strictObject({ free: Plan, starter: Plan, pro: Plan, enterprise: Plan }),
});

/** Amounts in minor units of one currency. A plan whose monthly price is null cannot be bought through checkout. */
export type PriceSheet = v.InferOutput<typeof Sheet>;
export type PlanPrices = PriceSheet["plans"]["pro"];

/** Reports all faults in one message, so that an operator can correct them in one attempt. */
export const Prices = v.pipe(
  v.unknown(),
  v.rawTransform(({ dataset, addIssue, NEVER }): PriceSheet => {
    const parsed = v.safeParse(Sheet, dataset.value);
    if (parsed.success) return parsed.output;
    const faults = parsed.issues.map((issue) => `${v.getDotPath(issue) ?? "it"} ${messageOf(issue)}`);
    addIssue({ message: `is not a valid price sheet: ${faults.join(", ")}` });
    return NEVER;
  }),
);

function messageOf(issue: v.BaseIssue<unknown>): string {
  if (issue.type !== "strict_object") return issue.message;
  if (issue.expected === "never") return "is unknown";
  return issue.input === undefined ? "is missing" : "must be a table";
}

/** The value of the setting: JSON, or the path of a JSON or TOML file. Throws an Error that names the fault. */
export function readPrices(text: string, cwd: string): unknown {
  if (text.trimStart().startsWith("{")) return JSON.parse(text);
  const content = readFileSync(resolve(cwd, text), "utf8");
  return text.endsWith(".toml") ? parseToml(content) : JSON.parse(content);
}

const meters = (storage: [number, number], egress: [number, number], transcoding: [number, number]) => {
  const meter = ([included, unit_price_minor]: [number, number]) => ({ included, unit_price_minor });
  return {
    storage_gb_month: meter(storage),
    egress_gb: meter(egress),
    transcoding_minute: meter(transcoding),
    live_minute: null,
  };
};
const NO_QUOTAS = { storage_bytes: null, transcoding_minutes: null, live_streams: null, live_bitrate: null };

export const DEFAULT_PRICES: PriceSheet = {
  currency: "USD",
  plans: {
    free: {
      monthly_price_minor: 0,
      ...meters([5, 0], [50, 0], [60, 0]),
      quotas: { storage_bytes: 5_000_000_000, transcoding_minutes: 60, live_streams: 5, live_bitrate: null },
    },
    starter: { monthly_price_minor: 1900, ...meters([100, 2.5], [500, 2], [1000, 1.5]), quotas: NO_QUOTAS },
    pro: { monthly_price_minor: 9900, ...meters([1000, 2], [5000, 1.5], [5000, 1]), quotas: NO_QUOTAS },
    enterprise: {
      monthly_price_minor: 49_900,
      ...meters([10_000, 1.5], [50_000, 1], [50_000, 0.75]),
      quotas: NO_QUOTAS,
    },
  },
};
