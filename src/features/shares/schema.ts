import * as v from "valibot";
import { RecordIdInPath } from "#platform/http/parameters.ts";
import { toRecord } from "#platform/http/records.ts";
import { ClientTime, Name, NullableTime, oneOf, Paging, PathId, whole } from "#platform/http/schemas.ts";
import { describedAs } from "#protocol/fields.ts";
import { AssetId, CreatedAt, RecordId, TenantIdField, UpdatedAt } from "#protocol/record-fields.ts";
import type { ShareRow } from "#storage/db/schema.ts";
import { SHARE_STATUSES, shareStatus } from "./rules.ts";

/** One line, without what changes the order of the text around it. */
const ShareName = v.pipe(
  Name(200),
  v.check(
    (name) => !/[\p{Cc}\u2028\u2029\u202a-\u202e\u2066-\u2069]/u.test(name),
    "must not contain control characters",
  ),
  v.description("Name for people of the tenant; viewers do not see it"),
);
const MAX_PLAYS = 1_000_000_000;

const AllowDownload = v.pipe(v.boolean(), v.description("Whether viewers may download the video"));
const fields = {
  name: v.optional(v.nullable(ShareName)),
  password: v.optional(
    v.pipe(v.nullable(Name(1024)), v.description("Viewers must type it; null: none. It is kept as a hash")),
  ),
  expires_at: v.optional(
    v.pipe(
      v.nullable(ClientTime),
      v.description("The share ends at this time, which must be in the future; null: never"),
    ),
  ),
  max_plays: v.optional(
    v.pipe(v.nullable(whole(MAX_PLAYS)), v.description("The share ends after so many plays; null: no limit")),
  ),
  allow_download: describedAs(AllowDownload, v.optional(v.boolean("must be a boolean"))),
};
/** All are optional. */
export const ShareWrite = v.pipe(v.object(fields), v.title("ShareWrite"));
export type ShareInput = v.InferOutput<typeof ShareWrite>;

export const ShareList = v.object({ id: RecordIdInPath });
export const ShareParams = v.object({ id: RecordIdInPath, share_id: v.pipe(PathId, v.description("Id of the share")) });
export const ShareQuery = v.object(Paging);

export const Share = v.pipe(
  v.object({
    id: RecordId,
    tenant_id: TenantIdField,
    asset_id: AssetId,
    name: v.pipe(v.nullable(v.string()), v.description("Name for people of the tenant")),
    url: v.pipe(v.string(), v.description("The page to send to viewers")),
    embed_url: v.pipe(v.string(), v.description("The page for frames of other sites")),
    status: v.pipe(oneOf(SHARE_STATUSES), v.description("Whether it can be played, or why not any more")),
    has_password: v.pipe(v.boolean(), v.description("Whether viewers must type a password")),
    expires_at: v.pipe(NullableTime, v.description("When the share ends; null: never")),
    max_plays: v.pipe(v.nullable(v.number()), v.description("After so many plays the share ends; null: no limit")),
    play_count: v.pipe(
      v.number(),
      v.description("Viewers who began to play; a reload within an hour is the same play"),
    ),
    allow_download: AllowDownload,
    created_at: CreatedAt,
    updated_at: UpdatedAt,
  }),
  v.title("Share"),
);

export const sharePath = (page: "watch" | "embed", code: string) => `/${page === "embed" ? "embed/s" : "s"}/${code}`;

/** `now`: in milliseconds since the epoch. */
export const toShare = (row: ShareRow, baseUrl: string, now: number) =>
  toRecord(Share, row, {
    url: baseUrl + sharePath("watch", row.code),
    embed_url: baseUrl + sharePath("embed", row.code),
    status: shareStatus(row, now),
    has_password: row.passwordHash !== null,
  });
