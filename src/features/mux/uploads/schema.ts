import * as v from "valibot";
import { AssetCreate } from "../assets/schema.ts";
import { fields, only, Paging, Text } from "../fields.ts";

/** Mux's limits, in seconds: a minute, a week. */
const TIMEOUT = [60, 604_800] as const;
const USUAL_TIMEOUT = 3600;

export const UploadCreate = fields({
  cors_origin: Text(2000),
  // Its input has no URL: the file is what is uploaded.
  new_asset_settings: v.optional(AssetCreate, {}),
  timeout: v.optional(
    v.pipe(
      v.number("must be a number of seconds"),
      v.integer("must be a whole number of seconds"),
      v.minValue(TIMEOUT[0], `must be at least ${TIMEOUT[0]}`),
      v.maxValue(TIMEOUT[1], `must be at most ${TIMEOUT[1]}`),
    ),
    USUAL_TIMEOUT,
  ),
  test: only(false),
});
const { cursor: _, ...paging } = Paging;
export const UploadList = fields(paging);
