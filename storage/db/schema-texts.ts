import { blob, integer, real, sqliteTable, text } from "drizzle-orm/sqlite-core";
import type { SubtitleWarning } from "#lib/subtitles";
import { SUBTITLE_ROLES, SUBTITLE_SOURCES, TEXT_TRACK_STATUSES } from "#model/enums.ts";
import { id, times } from "./columns.ts";

export const subtitles = sqliteTable("subtitles", {
  id: id(),
  tenantId: integer("tenant_id").notNull(),
  assetId: integer("asset_id").notNull(),
  language: text("language").notNull(),
  label: text("label").notNull(),
  position: integer("position").notNull().default(0),
  source: text("source", { enum: SUBTITLE_SOURCES }).notNull(),
  isDefault: integer("is_default", { mode: "boolean" }).notNull().default(false),
  role: text("role", { enum: SUBTITLE_ROLES }).notNull().default("subtitle"),
  status: text("status", { enum: TEXT_TRACK_STATUSES }).notNull().default("ready"),
  objectKey: text("object_key").notNull(),
  bytes: integer("bytes").notNull(),
  warnings: text("warnings", { mode: "json" }).$type<SubtitleWarning[]>().notNull().default([]),
  confidence: real("confidence"),
  errorCode: text("error_code"),
  errorMessage: text("error_message"),
  ...times,
});

/** An entry of a track. Milliseconds from the start of the video. */
export type TrackCue = { start_ms: number; end_ms?: number; payload: Record<string, unknown> };

export const tracks = sqliteTable("tracks", {
  id: id(),
  tenantId: integer("tenant_id").notNull(),
  assetId: integer("asset_id").notNull(),
  kind: text("kind").notNull(),
  name: text("name").notNull(),
  position: integer("position").notNull().default(0),
  status: text("status", { enum: TEXT_TRACK_STATUSES }).notNull(),
  cues: text("cues", { mode: "json" }).$type<TrackCue[]>(),
  storageKey: text("storage_key"),
  source: text("source"),
  producer: text("producer"),
  ...times,
});

export type SubtitleRow = typeof subtitles.$inferSelect;
export type TrackRow = typeof tracks.$inferSelect;

/** The times of the words of a generated subtitle, by the key of its text; triggers delete them with it. */
export const subtitleWords = sqliteTable("subtitle_words", {
  objectKey: text("object_key").primaryKey(),
  tenantId: integer("tenant_id").notNull(),
  /** Deflated JSON of `SpokenWords`. */
  words: blob("words", { mode: "buffer" }).notNull(),
});
