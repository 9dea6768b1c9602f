import * as v from "valibot";

/** Fields that several schemas share, each with its description. */

export const EmailField = v.pipe(v.string(), v.description("E-mail address, with which the person signs in"));
