import * as v from "valibot";
import { SUBTITLE_ROLES, SUBTITLE_SOURCES, TEXT_TRACK_STATUSES } from "#model/enums.ts";
import { FormFileField } from "#platform/http/form.ts";
import { AssetIdInPath, RecordIdInPath } from "#platform/http/parameters.ts";
import { toRecord } from "#platform/http/records.ts";
import { Name, Paging, Text } from "#platform/http/schemas.ts";
import { describedAs } from "#protocol/fields.ts";
import {
  AssetId,
  BytesField,
  CodeField,
  CreatedAt,
  FileField,
  IsDefault,
  LabelField,
  LanguageField,
  MessageField,
  PositionField,
  RecordId,
  SourceField,
  StatusField,
  UpdatedAt,
} from "#protocol/record-fields.ts";
import { SubtitleWarnings } from "#protocol/subtitle-warnings.ts";
import type { SubtitleRow } from "#storage/db/schema.ts";

const MAX_POSITION = 2 ** 31 - 1;

export const AssetParams = v.object({ video_asset_id: AssetIdInPath });
export const SubtitleParams = v.object({ video_asset_id: AssetIdInPath, id: RecordIdInPath });
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

const Role = v.pipe(
  v.picklist(SUBTITLE_ROLES, `must be ${SUBTITLE_ROLES.slice(0, -1).join(", ")} or ${SUBTITLE_ROLES.at(-1)}`),
  v.description(
    "`subtitle`; `caption`, with noises and speakers, for people who cannot hear; `description` of what is seen, for people who cannot see; `forced`, what every viewer needs who has no subtitles chosen",
  ),
);

export const SubtitleForm = v.object({
  file: describedAs(FileField, FormFileField),
  language: Language,
  label: describedAs(LabelField, Label),
  position: describedAs(
    PositionField,
    v.optional(
      v.pipe(
        Text(20),
        v.regex(/^\d{1,10}$/, "must be a whole number"),
        v.metadata({ openapi: { type: "integer", minimum: 0, maximum: MAX_POSITION } }),
        v.transform(Number),
        Position,
      ),
    ),
  ),
  is_default: describedAs(
    IsDefault,
    v.optional(
      v.pipe(
        v.picklist(["true", "false", "1", "0"], "must be true or false"),
        v.metadata({ openapi: { type: "boolean" } }),
        v.transform((value) => value === "true" || value === "1"),
      ),
    ),
  ),
  role: v.optional(Role),
});

export const SubtitlePatch = v.object({
  language: v.optional(Language),
  label: describedAs(LabelField, v.optional(Label)),
  content: v.optional(
    v.pipe(v.string("must be a string"), v.description("Complete WebVTT file, at most 2 MB of UTF-8")),
  ),
  position: describedAs(PositionField, v.optional(Position)),
  is_default: v.optional(IsDefault),
  role: v.optional(Role),
});

export const Subtitle = v.pipe(
  v.object({
    id: RecordId,
    asset_id: AssetId,
    language: LanguageField,
    label: LabelField,
    position: PositionField,
    source: describedAs(SourceField, v.picklist(SUBTITLE_SOURCES)),
    is_default: describedAs(IsDefault, v.boolean()),
    role: Role,
    status: describedAs(StatusField, v.picklist(TEXT_TRACK_STATUSES)),
    bytes: BytesField,
    warnings: SubtitleWarnings,
    confidence: v.pipe(
      v.nullable(v.number()),
      v.description("0 to 1: how certain speech recognition is of the text; null where it does not say"),
    ),
    error: v.pipe(
      v.nullable(v.object({ code: CodeField, message: MessageField })),
      v.description("Why the text could not be created; with status `ready`, the text is an earlier one"),
    ),
    url: v.pipe(v.nullable(v.string()), v.description("Ready to use; for a signed asset valid for one hour")),
    content: v.pipe(v.optional(v.string()), v.description("The text of the file")),
    created_at: CreatedAt,
    updated_at: UpdatedAt,
  }),
  v.title("Subtitle"),
);

export const toSubtitle = (row: SubtitleRow, url: string | null) =>
  toRecord(Subtitle, row, {
    error: row.errorCode === null ? null : { code: row.errorCode, message: row.errorMessage ?? "" },
    url,
  });
