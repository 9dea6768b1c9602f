import * as v from "valibot";
import { IMPORT_RUN_STATES, IMPORT_RUN_STATUSES } from "#model/enums.ts";
import { IMPORT_SOURCE_NAMES, MAX_IMPORT_PROBLEM_BYTES, MAX_IMPORT_PROBLEMS } from "#model/import-sources.ts";
import { RecordIdInPath, TenantIdInQuery } from "#platform/http/parameters.ts";
import { toRecord } from "#platform/http/records.ts";
import { Id, Name, oneOf, Paging, Text, Time } from "#platform/http/schemas.ts";
import { describedAs } from "#protocol/fields.ts";
import {
  CreatedAt,
  FinishedAt,
  ReasonField,
  RecordId,
  TenantIdField,
  TenantIdFromClient,
  TitleField,
} from "#protocol/record-fields.ts";
import type { ImportRunRow } from "#storage/db/schema.ts";

/** A run whose command has not reported for so long was ended by a kill, or has no connection. */
const SILENT_MS = 60_000;
const MAX_VIDEOS = 10_000_000;

const upTo = (most: number, description: string) =>
  v.pipe(
    v.number("must be a number"),
    v.integer("must be a whole number"),
    v.minValue(0, "must be at least 0"),
    v.maxValue(most, `must be at most ${most}`),
    v.description(description),
  );
/** What a run has done, in a report and in its record. */
const counts = {
  total: upTo(MAX_VIDEOS, "Videos that the source has"),
  imported: upTo(MAX_VIDEOS, "Imported by this run"),
  unchanged: upTo(MAX_VIDEOS, "Imported by earlier runs"),
  failed: upTo(MAX_VIDEOS, "Not imported, or not completely"),
  encoding: upTo(MAX_VIDEOS, "Uploaded, and being encoded"),
  bytes: upTo(Number.MAX_SAFE_INTEGER, "Bytes that were moved"),
  problem_count: upTo(MAX_VIDEOS, "All problems, also those that are not listed"),
};
const Problem = v.object({
  source_id: v.pipe(Text(1000), v.description("Id of the video where it comes from")),
  title: describedAs(TitleField, Text(1000)),
  asset_id: v.pipe(v.nullable(Id), v.description("Null: it has no asset")),
  reason: describedAs(ReasonField, Text(2000)),
});
const Problems = v.pipe(
  v.array(Problem),
  v.maxLength(MAX_IMPORT_PROBLEMS, `must have at most ${MAX_IMPORT_PROBLEMS} entries`),
  v.check(
    (problems) => Buffer.byteLength(JSON.stringify(problems)) <= MAX_IMPORT_PROBLEM_BYTES,
    `must have at most ${MAX_IMPORT_PROBLEM_BYTES} bytes as JSON`,
  ),
  v.description(`The first videos that were not imported, or not completely: at most ${MAX_IMPORT_PROBLEMS}`),
);

const Provider = v.pipe(oneOf(IMPORT_SOURCE_NAMES), v.description("Where the videos come from"));
const Source = v.pipe(v.nullable(Name(1000)), v.description("The directory or bucket; null for an account"));

export const ImportRunWrite = v.pipe(
  v.object({
    tenant_id: v.optional(TenantIdFromClient),
    provider: Provider,
    source: v.optional(Source),
    total: counts.total,
  }),
  v.title("ImportRunWrite"),
);
export type ImportRunInput = v.InferOutput<typeof ImportRunWrite>;

const ErrorText = v.pipe(v.nullable(Text(2000)), v.description("Why it ended before all videos were looked at"));

/** All are optional. */
export const ImportRunPatch = v.pipe(
  v.object({
    status: v.optional(v.pipe(oneOf(IMPORT_RUN_STATUSES), v.description("Any but `running` ends the run"))),
    ...v.partial(v.object(counts)).entries,
    error: v.optional(ErrorText),
    problems: v.optional(Problems),
  }),
  v.title("ImportRunPatch"),
);

export const ImportRunParams = v.object({ id: RecordIdInPath });
export const ImportRunQuery = v.object({ ...Paging, tenant_id: v.optional(TenantIdInQuery) });

const shown = {
  id: RecordId,
  tenant_id: TenantIdField,
  provider: Provider,
  source: Source,
  status: v.pipe(
    oneOf(IMPORT_RUN_STATES),
    v.description(
      "`interrupted`: its command has not reported for a minute; the same command continues it as a new run",
    ),
  ),
  ...counts,
  error: ErrorText,
  ended_at: v.nullable(FinishedAt),
  created_at: CreatedAt,
  updated_at: v.pipe(Time, v.description("Time of the last report")),
};
export const ImportRun = v.pipe(v.object(shown), v.title("ImportRun"));
export const ImportRunDetails = v.pipe(v.object({ ...shown, problems: Problems }), v.title("ImportRunDetails"));

const statusOf = ({ status, updatedAt }: ImportRunRow, now: number) =>
  status === "running" && now - updatedAt > SILENT_MS ? ("interrupted" as const) : status;

/** `now`: in milliseconds since the epoch. */
export const toImportRun = (row: ImportRunRow, now: number) => toRecord(ImportRun, row, { status: statusOf(row, now) });
export const toImportRunDetails = (row: ImportRunRow, now: number) =>
  toRecord(ImportRunDetails, row, { status: statusOf(row, now) });
