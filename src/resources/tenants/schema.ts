import * as v from "valibot";
import { PLANS, type TenantRow } from "../../../storage/db/schema.ts";
import { Name, oneOf, PlaybackPolicy, Time, whole } from "../../http/schemas.ts";
import { iso } from "../../lib/clock.ts";
import { TENANT_STATES, TENANT_STATUSES } from "../../lib/enums.ts";
import { ProfileName } from "../../protocol/encoding-profile.ts";
import { storedBytesOf, wholeMinutes } from "./usage.ts";

export const PlanName = oneOf(PLANS);
const Status = oneOf(TENANT_STATUSES);
const State = oneOf(TENANT_STATES);
export const Slug = v.pipe(
  Name(100),
  v.regex(/^[a-z0-9]+(-[a-z0-9]+)*$/, "must be lower-case letters and digits, in groups joined by single hyphens"),
);

const MAX_ORIGINS = 50;
/** Copied into a header (CSP 3, 2.3.1): a host-source with its scheme, and no other syntax. */
const Origin = v.pipe(
  Name(300),
  v.toLowerCase(),
  v.regex(
    /^(\*|https?:\/\/(\*\.)?[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*(:\d{1,5})?)$/,
    "must be * or an origin, such as https://www.example.com or https://*.example.com",
  ),
);
const AllowedOrigins = v.pipe(
  v.array(Origin, "must be an array of origins"),
  v.maxLength(MAX_ORIGINS, `must contain at most ${MAX_ORIGINS} origins`),
  v.description("Origins that may embed the player; * allows all, an empty list none"),
);

const RetentionDays = v.nullable(whole(36_500));
const SourceDays = v.pipe(
  RetentionDays,
  v.description("Days from the time an asset became ready until its source is deleted; null: never"),
);
const AnalyticsDays = v.pipe(
  RetentionDays,
  v.description("Days until playback events, viewers and their sums are deleted; null: never"),
);

const DefaultProfile = v.pipe(
  v.nullable(ProfileName),
  v.description("The encoding profile of assets that name none; null: `default`"),
);

export const TenantWrite = v.object({
  name: Name(200),
  slug: Slug,
  plan_name: v.optional(PlanName, "pro"),
  default_playback_policy: v.optional(PlaybackPolicy, "signed"),
  allowed_origins: v.optional(AllowedOrigins, ["*"]),
});
const EarlyPlayback = v.pipe(
  v.nullable(v.boolean("must be true, false or null")),
  v.description("Default of `early_playback` of its uploads and assets; null: the server's setting"),
);
export const TenantPatch = v.object({
  name: v.optional(Name(200)),
  plan_name: v.optional(PlanName),
  default_playback_policy: v.optional(PlaybackPolicy),
  allowed_origins: v.optional(AllowedOrigins),
  status: v.optional(Status),
  early_playback: v.optional(EarlyPlayback),
  delete_sources_after_days: v.optional(SourceDays),
  delete_analytics_after_days: v.optional(AnalyticsDays),
  default_encoding_profile: v.optional(DefaultProfile),
});

export const Tenant = v.pipe(
  v.object({
    id: v.number(),
    name: v.string(),
    slug: v.string(),
    status: State,
    plan_name: PlanName,
    default_playback_policy: PlaybackPolicy,
    allowed_origins: v.array(v.string()),
    early_playback: EarlyPlayback,
    delete_sources_after_days: SourceDays,
    delete_analytics_after_days: AnalyticsDays,
    default_encoding_profile: DefaultProfile,
    storage_bytes: v.number(),
    source_bytes: v.pipe(v.number(), v.description("The part of `storage_bytes` that is uploaded files")),
    egress_bytes: v.number(),
    transcoding_minutes: v.number(),
    live_minutes: v.pipe(v.number(), v.description("Minutes of live streams received")),
    created_at: Time,
    updated_at: Time,
  }),
  v.title("Tenant"),
);

export const toTenant = (row: TenantRow): v.InferInput<typeof Tenant> => ({
  id: row.id,
  name: row.name,
  slug: row.slug,
  status: row.deleteRequestedAt === null ? row.status : "deleting",
  plan_name: row.planName,
  default_playback_policy: row.defaultPlaybackPolicy,
  allowed_origins: row.allowedOrigins,
  early_playback: row.earlyPlayback,
  delete_sources_after_days: row.deleteSourcesAfterDays,
  delete_analytics_after_days: row.deleteAnalyticsAfterDays,
  default_encoding_profile: row.defaultEncodingProfile,
  storage_bytes: storedBytesOf(row),
  source_bytes: row.sourceBytes,
  egress_bytes: row.egressBytes,
  transcoding_minutes: wholeMinutes(row.transcodingMs),
  live_minutes: wholeMinutes(row.liveMs),
  created_at: iso(row.createdAt),
  updated_at: iso(row.updatedAt),
});

export const TenantDeletion = v.pipe(
  v.object({ id: v.number(), slug: v.string(), status: v.literal("deleting") }),
  v.title("TenantDeletion"),
);
