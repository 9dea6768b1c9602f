import * as v from "valibot";
import { iso } from "#lib/base";
import { CAPTION_JOB_STATUSES, CAPTION_TRANSLATION_STATUSES } from "#model/enums.ts";
import { NullableTime, oneOf, Time } from "#platform/http/schemas.ts";
import type { CaptionJobRow } from "#storage/db/schema.ts";

const Fault = v.nullable(v.object({ code: v.string(), message: v.string() }));

export const CaptionJob = v.pipe(
  v.object({
    id: v.number(),
    asset_id: v.number(),
    subtitle_id: v.number(),
    status: oneOf(CAPTION_JOB_STATUSES),
    language: v.pipe(v.string(), v.description("As requested: a BCP 47 tag or `auto`")),
    translations: v.pipe(
      v.array(
        v.object({
          language: v.string(),
          subtitle_id: v.pipe(
            v.nullable(v.number()),
            v.description("Null while an earlier subtitle is to be replaced"),
          ),
          status: v.pipe(
            oneOf(CAPTION_TRANSLATION_STATUSES),
            v.description("`skipped`: the speech is in this language, or the subtitle was deleted"),
          ),
          error: Fault,
        }),
      ),
      v.description("What `translate_to` requested; translated when the captions are there"),
    ),
    progress: v.pipe(v.number(), v.description("0 to 100")),
    stage: v.nullable(v.string()),
    parts: v.pipe(
      v.nullable(v.number()),
      v.description(
        "The number of parts of long audio that workers recognize at once; null: one worker recognizes all",
      ),
    ),
    attempt: v.pipe(v.number(), v.description("Number of attempts, including the running one")),
    error: Fault,
    started_at: NullableTime,
    finished_at: NullableTime,
    created_at: Time,
    updated_at: Time,
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
