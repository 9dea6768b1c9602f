import * as v from "valibot";
import { PLANS, type TenantRow } from "../../../storage/db/schema.ts";
import { Name, PlaybackPolicy, Time } from "../../http/schemas.ts";
import { iso } from "../../lib/clock.ts";

export const PlanName = v.picklist(PLANS, "must be free, starter, pro or enterprise");
const Status = v.picklist(["active", "suspended"], "must be active or suspended");
export const Slug = v.pipe(
  Name(100),
  v.regex(/^[a-z0-9]+(-[a-z0-9]+)*$/, "must be lower-case letters and digits, in groups joined by single hyphens"),
);

const MAX_ORIGINS = 50;
/** Goes into a header as it stands (CSP 3, 2.3.1): a host-source with its scheme, and no way to say more. */
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
  v.maxLength(MAX_ORIGINS, `must hold at most ${MAX_ORIGINS} origins`),
  v.description("Whose pages may show the embed page in a frame; * is everybody's, none is nobody's"),
);

export const TenantWrite = v.object({
  name: Name(200),
  slug: Slug,
  plan_name: v.optional(PlanName, "pro"),
  default_playback_policy: v.optional(PlaybackPolicy, "signed"),
  allowed_origins: v.optional(AllowedOrigins, ["*"]),
});
export const TenantPatch = v.object({
  name: v.optional(Name(200)),
  plan_name: v.optional(PlanName),
  default_playback_policy: v.optional(PlaybackPolicy),
  allowed_origins: v.optional(AllowedOrigins),
  status: v.optional(Status),
});

export const Tenant = v.pipe(
  v.object({
    id: v.number(),
    name: v.string(),
    slug: v.string(),
    status: Status,
    plan_name: PlanName,
    default_playback_policy: PlaybackPolicy,
    allowed_origins: v.array(v.string()),
    storage_bytes: v.number(),
    egress_bytes: v.number(),
    transcoding_minutes: v.number(),
    created_at: Time,
    updated_at: Time,
  }),
  v.title("Tenant"),
);

export const toTenant = (row: TenantRow): v.InferInput<typeof Tenant> => ({
  id: row.id,
  name: row.name,
  slug: row.slug,
  status: row.status,
  plan_name: row.planName,
  default_playback_policy: row.defaultPlaybackPolicy,
  allowed_origins: row.allowedOrigins,
  storage_bytes: row.storageBytes,
  egress_bytes: row.egressBytes,
  transcoding_minutes: Math.ceil(row.transcodingMs / 60_000),
  created_at: iso(row.createdAt),
  updated_at: iso(row.updatedAt),
});
