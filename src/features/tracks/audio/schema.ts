import * as v from "valibot";
import { AUDIO_ROLES } from "#lib/manifests";
import { AUDIO_TRACK_STATUSES } from "#model/enums.ts";
import { RecordIdInPath } from "#platform/http/parameters.ts";
import { toRecord } from "#platform/http/records.ts";
import { Name, oneOf, PathId } from "#platform/http/schemas.ts";
import { describedAs } from "#protocol/fields.ts";
import {
  AssetId,
  CodeField,
  CreatedAt,
  ErrorField,
  IsDefault,
  LanguageField,
  MessageField,
  NameField,
  RecordId,
  StatusField,
  TrackId,
  UpdatedAt,
} from "#protocol/record-fields.ts";
import type { AudioTrackRow } from "#storage/db/schema.ts";

export const AssetParams = v.object({ id: RecordIdInPath });
export const TrackParams = v.object({ id: RecordIdInPath, track_id: describedAs(TrackId, PathId) });

const Role = v.pipe(
  oneOf(AUDIO_ROLES),
  v.description("`description`: for people who do not see the video. Players begin with `main`"),
);
const Label = v.pipe(Name(200), v.description("As players show it"));
const Language = v.pipe(v.string("must be a string"), v.maxLength(100), v.description("A BCP 47 tag"));

/** The fields of the form. */
export const AudioTrackForm = v.object({
  language: Language,
  name: Label,
  role: v.optional(Role, "alternate"),
  is_default: describedAs(
    IsDefault,
    v.optional(
      v.pipe(
        v.picklist(["true", "false", "1", "0"], "must be true or false"),
        v.transform((value) => value === "true" || value === "1"),
      ),
      "false",
    ),
  ),
});

export const AudioTrackPatch = v.object({
  language: v.optional(Language),
  name: v.optional(Label),
  role: v.optional(Role),
  is_default: v.optional(IsDefault),
});

export const AudioTrack = v.pipe(
  v.object({
    id: RecordId,
    asset_id: AssetId,
    language: v.nullable(LanguageField),
    name: NameField,
    role: Role,
    is_default: v.pipe(v.boolean(), v.description("Whether players begin with it")),
    source: v.pipe(v.picklist(["source", "upload"]), v.description("`source`: of the video's own file")),
    status: describedAs(StatusField, oneOf(AUDIO_TRACK_STATUSES)),
    error: describedAs(ErrorField, v.nullable(v.object({ code: CodeField, message: MessageField }))),
    bytes: v.pipe(v.number(), v.description("Stored for it, apart from the video's media")),
    created_at: CreatedAt,
    updated_at: UpdatedAt,
  }),
  v.title("AudioTrack"),
);

export const toAudioTrack = (row: AudioTrackRow, isDefault: boolean) =>
  toRecord(AudioTrack, row, {
    is_default: isDefault,
    source: row.rendition === null ? "upload" : "source",
    error: row.errorCode === null ? null : { code: row.errorCode, message: row.errorMessage ?? "" },
  });
