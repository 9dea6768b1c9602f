import * as v from "valibot";
import { canonicalLanguage } from "#lib/base";
import { PLANS, TENANT_STATES, TENANT_STATUSES } from "#model/enums.ts";
import { toRecord } from "#platform/http/records.ts";
import { Name, oneOf, PlaybackPolicy, whole } from "#platform/http/schemas.ts";
import { ProfileName } from "#protocol/encoding-profile.ts";
import { describedAs } from "#protocol/fields.ts";
import {
  CreatedAt,
  NameField,
  RecordId,
  SlugField,
  StatusField,
  StorageBytes,
  UpdatedAt,
} from "#protocol/record-fields.ts";
import type { TenantRow } from "#storage/db/schema.ts";
import { storedBytesOf, wholeMinutes } from "./usage.ts";

export const PlanName = v.pipe(oneOf(PLANS), v.description("Plan of the tenant"));
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

const Language = v.pipe(
  v.nullable(
    v.pipe(
      v.string("must be a language, such as de or pt-BR, or null"),
      v.maxLength(35, "must be a language, such as de or pt-BR, or null"),
      v.check((tag) => canonicalLanguage(tag) !== null, "must be a language, such as de or pt-BR, or null"),
      v.transform((tag) => canonicalLanguage(tag)),
    ),
  ),
  v.description("Language of captions that are generated without one, where it is not detected; null: none"),
  v.metadata({ openapi: { type: "string", maxLength: 35, nullable: true } }),
);

const DefaultPlaybackPolicy = v.pipe(PlaybackPolicy, v.description("Playback policy of new assets"));
export const TenantWrite = v.object({
  name: describedAs(NameField, Name(200)),
  slug: describedAs(SlugField, Slug),
  plan_name: v.optional(PlanName, "pro"),
  default_playback_policy: v.optional(DefaultPlaybackPolicy, "signed"),
  allowed_origins: v.optional(AllowedOrigins, ["*"]),
});
const EarlyPlayback = v.pipe(
  v.nullable(v.boolean("must be true, false or null")),
  v.description("Default of `early_playback` of its uploads and assets; null: the server's setting"),
);
const AccentColor = v.pipe(
  v.nullable(
    v.pipe(
      v.string("must be a color, such as #3b6cf6, or null"),
      v.regex(/^#([0-9a-fA-F]{3}|[0-9a-fA-F]{6})$/, "must be a color, such as #3b6cf6, or null"),
    ),
  ),
  v.description("Color of the player's controls; null: the default one"),
);
const onOff = (about: string) => v.pipe(v.boolean("must be true or false"), v.description(about));
const ShowTitle = onOff("Whether the pages show the title of a video");
const AllowDownload = onOff("Whether viewers may download videos");
const LogoUrl = v.pipe(v.nullable(v.string()), v.description("Set with PUT /tenants/{id}/logo; null: no logo"));

/** Fields that are absent keep their values. */
const PlayerPatch = v.object({
  accent_color: v.optional(AccentColor),
  show_title: v.optional(ShowTitle),
  allow_download: v.optional(AllowDownload),
  logo_url: v.optional(LogoUrl),
});
const Player = v.object({
  accent_color: AccentColor,
  logo_url: LogoUrl,
  show_title: ShowTitle,
  allow_download: AllowDownload,
});

const PlayerField = v.pipe(Player, v.description("How the player looks; a change names the fields to change"));
const settings = {
  name: describedAs(NameField, v.optional(Name(200))),
  default_playback_policy: v.optional(DefaultPlaybackPolicy),
  allowed_origins: v.optional(AllowedOrigins),
  early_playback: v.optional(EarlyPlayback),
  delete_sources_after_days: v.optional(SourceDays),
  delete_analytics_after_days: v.optional(AnalyticsDays),
  default_encoding_profile: v.optional(DefaultProfile),
  language: v.optional(Language),
  player: describedAs(PlayerField, v.optional(PlayerPatch)),
};
export const TenantPatch = v.object({
  ...settings,
  plan_name: v.optional(PlanName),
  status: describedAs(StatusField, v.optional(Status)),
});
const OPERATORS = "Accepted with its current value only: the operator changes it";
/** What the tenant's own admins change. */
export const TenantSettings = v.object({
  ...settings,
  plan_name: v.optional(v.pipe(PlanName, v.description(OPERATORS))),
  status: v.optional(v.pipe(State, v.description(OPERATORS))),
  slug: v.optional(v.pipe(Slug, v.description(OPERATORS))),
});

export const Tenant = v.pipe(
  v.object({
    id: RecordId,
    name: NameField,
    slug: SlugField,
    status: describedAs(StatusField, State),
    plan_name: PlanName,
    default_playback_policy: DefaultPlaybackPolicy,
    allowed_origins: v.pipe(v.array(v.string()), v.description("Origins that may embed the player")),
    early_playback: EarlyPlayback,
    delete_sources_after_days: SourceDays,
    delete_analytics_after_days: AnalyticsDays,
    default_encoding_profile: DefaultProfile,
    language: Language,
    player: PlayerField,
    storage_bytes: StorageBytes,
    source_bytes: v.pipe(v.number(), v.description("The part of `storage_bytes` that is uploaded files")),
    egress_bytes: v.pipe(v.number(), v.description("Bytes sent to viewers and simulcast targets in this month")),
    transcoding_minutes: v.pipe(v.number(), v.description("Minutes of video transcoded in this month")),
    live_minutes: v.pipe(v.number(), v.description("Minutes of live streams received")),
    created_at: CreatedAt,
    updated_at: UpdatedAt,
  }),
  v.title("Tenant"),
);

/** The path of a tenant's logo, which changes with the image; null without one. */
export const logoPath = ({ id, logo }: Pick<TenantRow, "id" | "logo">): string | null =>
  logo === null ? null : `/logos/${id}/${logo}.png`;

/** How the player of a tenant looks. `baseUrl` goes before the path of the logo. */
export function playerOf(row: Pick<TenantRow, "id" | "logo" | "player">, baseUrl: string): v.InferInput<typeof Player> {
  const { accent_color = null, show_title = true, allow_download = false } = row.player;
  const path = logoPath(row);
  return { accent_color, logo_url: path && `${baseUrl}${path}`, show_title, allow_download };
}

export const toTenant = (row: TenantRow, baseUrl: string) =>
  toRecord(Tenant, row, {
    status: row.deleteRequestedAt === null ? row.status : "deleting",
    player: playerOf(row, baseUrl),
    storage_bytes: storedBytesOf(row),
    transcoding_minutes: wholeMinutes(row.transcodingMs),
    live_minutes: wholeMinutes(row.liveMs),
  });

export const TenantDeletion = v.pipe(
  v.object({ id: RecordId, slug: SlugField, status: describedAs(StatusField, v.literal("deleting")) }),
  v.title("TenantDeletion"),
);
