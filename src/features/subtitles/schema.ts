import * as v from "valibot";
import { SUBTITLE_SOURCES, TEXT_TRACK_STATUSES } from "#model/enums.ts";
import { FormFileField } from "#platform/http/form.ts";
import { toRecord } from "#platform/http/records.ts";
import { Name, Paging, PathId, Text, Time } from "#platform/http/schemas.ts";
import { SubtitleWarnings } from "#protocol/subtitle-warnings.ts";
import type { SubtitleRow } from "#storage/db/schema.ts";

const MAX_POSITION = 2 ** 31 - 1;

export const AssetParams = v.object({ video_asset_id: PathId });
export const SubtitleParams = v.object({ video_asset_id: PathId, id: PathId });
export const SubtitleQuery = v.object({
  ...Paging,
  include: v.optional(
    v.pipe(v.picklist(["content"], "must be content"), v.description("`content`: include the content")),
  ),
});

/** An invalid language has its own error code. */
const Language = v.pipe(v.string("must be a string"), v.description("A BCP 47 tag"));
const Label = Name(200);
const Position = v.pipe(
  v.number("must be an integer"),
  v.integer("must be an integer"),
  v.minValue(0, "must not be negative"),
  v.maxValue(MAX_POSITION, "is too large"),
);

export const SubtitleForm = v.object({
  file: FormFileField,
  language: Language,
  label: Label,
  position: v.optional(
    v.pipe(
      Text(20),
      v.regex(/^\d{1,10}$/, "must be a whole number"),
      v.metadata({ openapi: { type: "integer", minimum: 0, maximum: MAX_POSITION } }),
      v.transform(Number),
      Position,
    ),
  ),
  is_default: v.optional(
    v.pipe(
      v.picklist(["true", "false", "1", "0"], "must be true or false"),
      v.metadata({ openapi: { type: "boolean" } }),
      v.transform((value) => value === "true" || value === "1"),
    ),
  ),
});

export const SubtitlePatch = v.object({
  language: v.optional(Language),
  label: v.optional(Label),
  content: v.optional(
    v.pipe(v.string("must be a string"), v.description("Complete WebVTT file, at most 2 MB of UTF-8")),
  ),
  position: v.optional(Position),
  is_default: v.optional(v.boolean("must be true or false")),
});

export const Subtitle = v.pipe(
  v.object({
    id: v.number(),
    asset_id: v.number(),
    language: v.string(),
    label: v.string(),
    position: v.number(),
    source: v.picklist(SUBTITLE_SOURCES),
    is_default: v.boolean(),
    status: v.picklist(TEXT_TRACK_STATUSES),
    bytes: v.number(),
    warnings: SubtitleWarnings,
    confidence: v.pipe(
      v.nullable(v.number()),
      v.description("0 to 1: how certain speech recognition is of the text; null where it does not say"),
    ),
    error: v.pipe(
      v.nullable(v.object({ code: v.string(), message: v.string() })),
      v.description("Why the text could not be created; with status `ready`, the text is an earlier one"),
    ),
    url: v.pipe(v.nullable(v.string()), v.description("Ready to use; for a signed asset valid for one hour")),
    content: v.optional(v.string()),
    created_at: Time,
    updated_at: Time,
  }),
  v.title("Subtitle"),
);

export const toSubtitle = (row: SubtitleRow, url: string | null) =>
  toRecord(Subtitle, row, {
    error: row.errorCode === null ? null : { code: row.errorCode, message: row.errorMessage ?? "" },
    url,
  });
