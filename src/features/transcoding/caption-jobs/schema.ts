import * as v from "valibot";
import { iso } from "#lib/base";
import { CAPTION_JOB_STATUSES, CAPTION_TRANSLATION_STATUSES } from "#model/enums.ts";
import { oneOf } from "#platform/http/schemas.ts";
import { describedAs } from "#protocol/fields.ts";
import {
  AssetId,
  CodeField,
  CreatedAt,
  ErrorField,
  FinishedAt,
  LanguageField,
  MessageField,
  RecordId,
  StageField,
  StartedAt,
  StatusField,
  SubtitleId,
  UpdatedAt,
} from "#protocol/record-fields.ts";
import type { CaptionJobRow } from "#storage/db/schema.ts";

const Fault = v.nullable(v.object({ code: CodeField, message: MessageField }));

export const CaptionJob = v.pipe(
  v.object({
    id: RecordId,
    asset_id: AssetId,
    subtitle_id: SubtitleId,
    status: describedAs(StatusField, oneOf(CAPTION_JOB_STATUSES)),
    language: v.pipe(v.string(), v.description("As requested: a BCP 47 tag or `auto`")),
    translations: v.pipe(
      v.array(
        v.object({
          language: LanguageField,
          subtitle_id: v.pipe(
            v.nullable(v.number()),
            v.description("Null while an earlier subtitle is to be replaced"),
          ),
          status: v.pipe(
            oneOf(CAPTION_TRANSLATION_STATUSES),
            v.description("`skipped`: the speech is in this language, or the subtitle was deleted"),
          ),
          error: describedAs(ErrorField, Fault),
        }),
      ),
      v.description("What `translate_to` requested; translated when the captions are there"),
    ),
    progress: v.pipe(v.number(), v.description("0 to 100")),
    stage: v.nullable(StageField),
    parts: v.pipe(
      v.nullable(v.number()),
      v.description(
        "The number of parts of long audio that workers recognize at once; null: one worker recognizes all",
      ),
    ),
    attempt: v.pipe(v.number(), v.description("Number of attempts, including the running one")),
    error: describedAs(ErrorField, Fault),
    started_at: v.nullable(StartedAt),
    finished_at: v.nullable(FinishedAt),
    created_at: CreatedAt,
    updated_at: UpdatedAt,
  }),
  v.title("CaptionJob"),
);

export const toCaptionJob = (row: CaptionJobRow): v.InferInput<typeof CaptionJob> => ({
  id: row.id,
  asset_id: row.assetId,
  subtitle_id: row.subtitleId,
  status: row.status,
  language: row.language ?? "auto",
  translations: row.translations.map(({ attempts: _, ...one }) => one),
  progress: row.progress,
  stage: row.stage,
  parts: row.parts,
  // Parts have attempts of their own.
  attempt: Math.max(row.attempts, row.parts === null ? 0 : 1),
  error: row.errorCode === null ? null : { code: row.errorCode, message: row.errorMessage ?? "" },
  started_at: iso(row.startedAt),
  finished_at: iso(row.finishedAt),
  created_at: iso(row.createdAt),
  updated_at: iso(row.updatedAt),
});
