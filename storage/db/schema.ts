import { integer, primaryKey, real, sqliteTable, text } from "drizzle-orm/sqlite-core";
import type { SharedMedia } from "#lib/manifests";
import {
  ASSET_PROVIDERS,
  BATCH_STATUSES,
  BATCH_UPLOAD_MODES,
  BATCH_UPLOAD_STATUSES,
  DISABLED_REASONS,
  INPUT_STATUSES,
  PLANS,
  PLAYBACK_POLICIES,
  PLAYBACK_STATUSES,
  TENANT_STATUSES,
  UPLOAD_STATUSES,
  WEBHOOK_DELIVERY_STATUSES,
  WEBHOOK_FORMATS,
} from "#model/enums.ts";
import type { Warning } from "#model/warnings.ts";
import { id, times } from "./columns.ts";
import type { RenditionRow } from "./rendition-row.ts";
import type { taskLeases, transcodingAttempts, transcodingJobs, transcodingTasks, workers } from "./schema-jobs.ts";
import type { PlaybackId } from "./schema-playback-ids.ts";

export type { RenditionRow } from "./rendition-row.ts";
export { type AddedAudioMedia, type AudioTrackRow, audioTracks } from "./schema-audio.ts";
export {
  billingEvents,
  billingOrders,
  type OrderRow,
  type UsageMonthRow,
  usageMonths,
} from "./schema-billing.ts";
export {
  type CaptionJobRow,
  type CaptionPartRow,
  type CaptionTranslation,
  captionJobs,
  captionParts,
} from "./schema-captions.ts";
export { type SourceFetchRow, sourceFetches } from "./schema-fetches.ts";
export {
  type ImportProblem,
  type ImportRow,
  type ImportRunRow,
  importRows,
  importRuns,
  imports,
} from "./schema-imports.ts";
export type { ClipJob, JoinedPart, Requirements, TrimJob } from "./schema-jobs.ts";
export {
  callbackReceipts,
  taskLeases,
  transcodingAttempts,
  transcodingJobs,
  transcodingTasks,
  workers,
} from "./schema-jobs.ts";
export { SIGNING_ALGORITHMS, type SigningKeyRow, signingKeys } from "./schema-keys.ts";
export { type LiveChannelRow, type LiveStreamRow, liveChannels, liveReports, liveStreams } from "./schema-live.ts";
export { MAIL_KINDS, type MailKind, type MailRow, mails, passwordResets } from "./schema-mail.ts";
export { type MuxUploadRow, muxMasters, muxStreams, muxUploads } from "./schema-mux.ts";
export {
  type NotificationData,
  type NotificationRow,
  notificationReads,
  notifications,
} from "./schema-notifications.ts";
export { objectGarbage, STORAGE_PHASES, type StorageLocationRow, storageLocation } from "./schema-objects.ts";
export {
  AUDIT_ACTORS,
  type AuditRow,
  auditEntries,
  idempotencyRecords,
  removalHolds,
  type ServerRow,
  servers,
} from "./schema-operations.ts";
export { type PlaybackId, playbackIds, type StaticRenditionRow, staticRenditions } from "./schema-playback-ids.ts";
export {
  type EncodingProfileRow,
  encodingProfiles,
  replacedMedia,
  tenantWatermarks,
  watermarks,
} from "./schema-profiles.ts";
export { type SearchQueueRow, searchQueue, searchSections, searchTexts } from "./schema-search.ts";
export {
  type InvitationRow,
  invitations,
  recoveryCodes,
  SESSION_SUBJECTS,
  type SessionRow,
  sessions,
  setupCodes,
  userIdentities,
} from "./schema-sessions.ts";
export { type ShareRow, sharePlays, shares } from "./schema-shares.ts";
export { tenantLogos } from "./schema-tenant-logos.ts";
export { type SubtitleRow, subtitles, subtitleWords, type TrackCue, type TrackRow, tracks } from "./schema-texts.ts";
export { type UserRow, users } from "./schema-users.ts";

/**
 * Rows as drizzle sees them; constraints and indexes are defined in `migrations/*.sql`. Times are milliseconds since
 * the epoch.
 */

export type PlaybackPolicy = "public" | "signed";
export type TagValue = string | number | boolean;

export const tenants = sqliteTable("tenants", {
  id: id(),
  name: text("name").notNull(),
  slug: text("slug").notNull(),
  status: text("status", { enum: TENANT_STATUSES }).notNull().default("active"),
  planName: text("plan_name", { enum: PLANS }).notNull().default("pro"),
  defaultPlaybackPolicy: text("default_playback_policy", { enum: PLAYBACK_POLICIES }).notNull().default("signed"),
  /** Null: the built-in one. */
  defaultEncodingProfile: text("default_encoding_profile"),
  allowedOrigins: text("allowed_origins", { mode: "json" }).$type<string[]>().notNull().default(["*"]),
  storageBytes: integer("storage_bytes").notNull().default(0),
  /** The part of `storageBytes` that is uploaded files; maintained by triggers. */
  sourceBytes: integer("source_bytes").notNull().default(0),
  egressBytes: integer("egress_bytes").notNull().default(0),
  transcodingMs: integer("transcoding_ms").notNull().default(0),
  /** The duration of media that publishers sent. */
  liveMs: integer("live_ms").notNull().default(0),
  storageChangedAt: integer("storage_changed_at"),
  /** Cues, tags, descriptions and watermarks in the database, in addition to `storageBytes`; maintained by triggers. */
  databaseBytes: integer("database_bytes").notNull().default(0),
  /** The value that bills have used since `storageChangedAt`. */
  billedDatabaseBytes: integer("billed_database_bytes").notNull().default(0),
  /** The default of its assets; null: the server's setting. */
  earlyPlayback: integer("early_playback", { mode: "boolean" }),
  /** After the asset became ready; null: never. */
  deleteSourcesAfterDays: integer("delete_sources_after_days"),
  /** Null: never. */
  deleteAnalyticsAfterDays: integer("delete_analytics_after_days"),
  /** That of its videos where nothing says more: a BCP 47 tag. */
  language: text("language"),
  /** How the player looks; absent members have their defaults. */
  player: text("player", { mode: "json" }).$type<StoredPlayer>().notNull().default({}),
  /** SHA-256 of the image in `tenant_logos`. */
  logo: text("logo"),
  /** The bytes of open uploads and batches; maintained by triggers. */
  announcedBytes: integer("announced_bytes").notNull().default(0),
  /** The bytes of its rows in `idempotency_records`; maintained by triggers. */
  idempotencyBytes: integer("idempotency_bytes").notNull().default(0),
  /** The tenant is being deleted since then, and its status is `suspended`. */
  deleteRequestedAt: integer("delete_requested_at"),
  ...times,
});

export type StoredPlayer = { accent_color?: string | null; show_title?: boolean; allow_download?: boolean };

export const apiKeys = sqliteTable("api_keys", {
  id: id(),
  tenantId: integer("tenant_id").notNull(),
  name: text("name").notNull(),
  scopes: text("scopes", { mode: "json" }).$type<string[]>().notNull(),
  tokenHash: text("token_hash").notNull(),
  lastFour: text("last_four").notNull(),
  expiresAt: integer("expires_at"),
  lastUsedAt: integer("last_used_at"),
  lastUsedAddress: text("last_used_address"),
  revokedAt: integer("revoked_at"),
  userId: integer("user_id"),
  ...times,
});

export const pairingCodes = sqliteTable("pairing_codes", {
  id: id(),
  tenantId: integer("tenant_id").notNull(),
  codeHash: text("code_hash").notNull(),
  expiresAt: integer("expires_at").notNull(),
  usedAt: integer("used_at"),
  createdAt: integer("created_at").notNull(),
});

export const collections = sqliteTable("collections", {
  id: id(),
  tenantId: integer("tenant_id").notNull(),
  parentId: integer("parent_id"),
  name: text("name").notNull(),
  slug: text("slug").notNull(),
  description: text("description"),
  position: integer("position").notNull().default(0),
  assetCount: integer("asset_count").notNull().default(0),
  isPublic: integer("is_public", { mode: "boolean" }).notNull().default(false),
  /** In the URL of its page, from the first time that it was published. */
  publicCode: text("public_code"),
  ...times,
});

export const assets = sqliteTable("assets", {
  id: id(),
  tenantId: integer("tenant_id").notNull(),
  externalId: text("external_id").notNull(),
  title: text("title").notNull(),
  description: text("description"),
  collectionId: integer("collection_id"),
  inputStatus: text("input_status", { enum: INPUT_STATUSES }).notNull(),
  playbackStatus: text("playback_status", { enum: PLAYBACK_STATUSES }).notNull(),
  playbackPolicy: text("playback_policy", { enum: PLAYBACK_POLICIES }).notNull(),
  provider: text("provider", { enum: ASSET_PROVIDERS }).notNull().default("managed"),
  manifestUrl: text("manifest_url"),
  sourceBytes: integer("source_bytes").notNull().default(0),
  storageBytes: integer("storage_bytes").notNull().default(0),
  durationSeconds: real("duration_seconds").notNull().default(0),
  sourceKey: text("source_key").notNull(),
  sourceSha256: text("source_sha256"),
  originalFilename: text("original_filename"),
  relativePath: text("relative_path"),
  mediaPrefix: text("media_prefix"),
  manifestPath: text("manifest_path"),
  dashManifestPath: text("dash_manifest_path"),
  thumbnailPath: text("thumbnail_path"),
  storyboardPath: text("storyboard_path"),
  mp4Path: text("mp4_path"),
  /** Chosen by a client, in place of `thumbnailPath`. */
  posterPath: text("poster_path"),
  posterBytes: integer("poster_bytes").notNull().default(0),
  posterWidth: integer("poster_width"),
  posterHeight: integer("poster_height"),
  renditions: text("renditions", { mode: "json" }).$type<RenditionRow[]>().notNull().default([]),
  /** The audio renditions of an asset with video. */
  audioRenditions: text("audio_renditions", { mode: "json" }).$type<RenditionRow[]>().notNull().default([]),
  width: integer("width"),
  height: integer("height"),
  frameRate: real("frame_rate"),
  progress: integer("progress").notNull().default(0),
  stage: text("stage"),
  errorCode: text("error_code"),
  errorMessage: text("error_message"),
  /** What of the source the media do not contain. */
  warnings: text("warnings", { mode: "json" }).$type<Warning[]>().notNull().default([]),
  tags: text("tags", { mode: "json" }).$type<Record<string, TagValue>>().notNull().default({}),
  priority: integer("priority").notNull().default(0),
  earlyPlayback: integer("early_playback", { mode: "boolean" }).notNull().default(false),
  /** Null: `default`, in rows from before there were profiles. */
  encodingProfile: text("encoding_profile"),
  /** The state of a playable asset that is not encoded completely. */
  encoding: text("encoding", { enum: ["partial", "failed"] }),
  readyAt: integer("ready_at"),
  /** `sourceKey` is empty then. */
  sourceDeletedAt: integer("source_deleted_at"),
  /** The asset is deleted then. */
  expiresAt: integer("expires_at"),
  /** The asset that a clip was cut from, while it exists. */
  parentAssetId: integer("parent_asset_id"),
  /** The prefix of another asset's media that a clip plays. They remain until no clip plays them. */
  sharedPrefix: text("shared_prefix"),
  /** Which of them. */
  sharedMedia: text("shared_media", { mode: "json" }).$type<SharedMedia>(),
  /** The part of `storageBytes` that is shared media; 0 while another asset counts them. */
  sharedBytes: integer("shared_bytes").notNull().default(0),
  /** Further ids and their policies, in the order of their creation; maintained by triggers. */
  playbackIds: text("playback_ids", { mode: "json" }).$type<PlaybackId[]>().notNull().default([]),
  ...times,
});

export const uploads = sqliteTable("uploads", {
  id: id(),
  tenantId: integer("tenant_id").notNull(),
  assetId: integer("asset_id").notNull(),
  status: text("status", { enum: UPLOAD_STATUSES }).notNull().default("pending"),
  filename: text("filename").notNull(),
  contentType: text("content_type").notNull(),
  bytesExpected: integer("bytes_expected").notNull(),
  bytesReceived: integer("bytes_received"),
  objectKey: text("object_key").notNull(),
  sourceWidth: integer("source_width"),
  sourceHeight: integer("source_height"),
  captions: text("captions", { mode: "json" }).$type<string[]>().notNull().default([]),
  captionsRequired: integer("captions_required", { mode: "boolean" }).notNull().default(false),
  /** Names of some of the captions, by language. */
  captionLabels: text("caption_labels", { mode: "json" }).$type<Record<string, string>>().notNull().default({}),
  mode: text("mode", { enum: ["put", "multipart", "tus"] })
    .notNull()
    .default("put"),
  multipartId: text("multipart_id"),
  partSize: integer("part_size"),
  expiresAt: integer("expires_at").notNull(),
  completedAt: integer("completed_at"),
  ...times,
});

export const events = sqliteTable("events", {
  id: id(),
  eventId: text("event_id").notNull(),
  tenantId: integer("tenant_id").notNull(),
  type: text("type").notNull(),
  data: text("data", { mode: "json" }).$type<Record<string, unknown>>().notNull(),
  createdAt: integer("created_at").notNull(),
  /** The W3C trace context of what caused it. */
  traceparent: text("traceparent"),
});

export const webhookEndpoints = sqliteTable("webhook_endpoints", {
  id: id(),
  tenantId: integer("tenant_id").notNull(),
  url: text("url").notNull(),
  description: text("description"),
  format: text("format", { enum: WEBHOOK_FORMATS }).notNull().default("svc"),
  eventTypes: text("event_types", { mode: "json" }).$type<string[]>().notNull().default([]),
  active: integer("active", { mode: "boolean" }).notNull().default(true),
  secret: text("secret").notNull(),
  previousSecret: text("previous_secret"),
  previousSecretExpiresAt: integer("previous_secret_expires_at"),
  failureCount: integer("failure_count").notNull().default(0),
  failingSince: integer("failing_since"),
  disabledAt: integer("disabled_at"),
  disabledReason: text("disabled_reason", { enum: DISABLED_REASONS }),
  lastDeliveryAt: integer("last_delivery_at"),
  deletedAt: integer("deleted_at"),
  ...times,
});

export const webhookDeliveries = sqliteTable("webhook_deliveries", {
  id: id(),
  tenantId: integer("tenant_id").notNull(),
  endpointId: integer("endpoint_id").notNull(),
  eventId: integer("event_id").notNull(),
  /** The name of the event for an endpoint in Mux's form. */
  name: text("name"),
  status: text("status", { enum: WEBHOOK_DELIVERY_STATUSES }).notNull().default("pending"),
  attempts: integer("attempts").notNull().default(0),
  tries: integer("tries").notNull().default(0),
  nextAttemptAt: integer("next_attempt_at"),
  claimedUntil: integer("claimed_until"),
  lastAttemptAt: integer("last_attempt_at"),
  deliveredAt: integer("delivered_at"),
  responseStatus: integer("response_status"),
  responseBody: text("response_body"),
  durationMs: integer("duration_ms"),
  errorCode: text("error_code"),
  errorMessage: text("error_message"),
  ...times,
});

export const uploadBatches = sqliteTable("ingest_batches", {
  id: id(),
  tenantId: integer("tenant_id").notNull(),
  name: text("name"),
  status: text("status", { enum: BATCH_STATUSES }).notNull().default("open"),
  folder: text("folder").notNull(),
  leaseSeconds: integer("lease_seconds").notNull(),
  expiresAt: integer("expires_at").notNull(),
  /** The bytes of its uploads that are not aborted, while it is open; maintained by triggers. */
  announcedBytes: integer("announced_bytes").notNull().default(0),
  uploadCount: integer("upload_count").notNull().default(0),
  manifestHash: text("manifest_hash"),
  result: text("result"),
  endedAt: integer("ended_at"),
  sweptAt: integer("swept_at"),
  ...times,
});

export const batchUploads = sqliteTable("ingest_uploads", {
  id: id(),
  tenantId: integer("tenant_id").notNull(),
  batchId: integer("batch_id").notNull(),
  objectKey: text("object_key").notNull(),
  status: text("status", { enum: BATCH_UPLOAD_STATUSES }).notNull().default("pending"),
  mode: text("mode", { enum: BATCH_UPLOAD_MODES }).notNull(),
  contentType: text("content_type").notNull(),
  bytesExpected: integer("bytes_expected").notNull(),
  bytesReceived: integer("bytes_received"),
  sha256: text("sha256"),
  multipartId: text("multipart_id"),
  partSize: integer("part_size"),
  ...times,
});

export const batchParts = sqliteTable(
  "ingest_parts",
  {
    uploadId: integer("upload_id").notNull(),
    partNumber: integer("part_number").notNull(),
    etag: text("etag").notNull(),
    bytes: integer("bytes").notNull(),
  },
  (table) => [primaryKey({ columns: [table.uploadId, table.partNumber] })],
);

export type TenantRow = typeof tenants.$inferSelect;
export type ApiKeyRow = typeof apiKeys.$inferSelect;
export type AssetRow = typeof assets.$inferSelect;
export type UploadRow = typeof uploads.$inferSelect;
export type JobRow = typeof transcodingJobs.$inferSelect;
/** A task, or a job that no worker has begun. */
export type QueuedRow = typeof transcodingTasks.$inferSelect;
/** A task of an attempt. */
export type TaskRow = QueuedRow & { attemptId: number };
export type TaskLeaseRow = typeof taskLeases.$inferSelect;
export type WorkerRow = typeof workers.$inferSelect;
export type AttemptRow = typeof transcodingAttempts.$inferSelect;
export type CollectionRow = typeof collections.$inferSelect;
export type EventRow = typeof events.$inferSelect;
export type EndpointRow = typeof webhookEndpoints.$inferSelect;
export type DeliveryRow = typeof webhookDeliveries.$inferSelect;
export type BatchRow = typeof uploadBatches.$inferSelect;
export type BatchUploadRow = typeof batchUploads.$inferSelect;
