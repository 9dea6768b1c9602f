import * as v from "valibot";

/** Fields that several schemas share, each with its description. */

export const CheckField = v.pipe(v.string(), v.description("What was checked"));
export const DetailField = v.pipe(v.string(), v.description("What was found, and what to do"));
export const OkField = v.pipe(v.boolean(), v.description("Whether there is no fault"));
