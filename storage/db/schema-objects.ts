import { integer, sqliteTable, text } from "drizzle-orm/sqlite-core";
import { STORE_KINDS } from "#model/enums.ts";

/** Unreferenced objects. A key, or a prefix that ends in a slash. */
export const objectGarbage = sqliteTable("unwanted_objects", {
  objectKey: text("object_key").primaryKey(),
  dueAt: integer("due_at").notNull(),
});

export const STORAGE_PHASES = ["settled", "copying", "verifying", "switching", "draining", "cleaning"] as const;

/** The active store and the target of a migration; no row until the first migration. */
export const storageLocation = sqliteTable("storage_place", {
  id: integer("id").primaryKey(),
  active: text("active", { enum: STORE_KINDS }).notNull(),
  other: text("other", { enum: STORE_KINDS }),
  phase: text("phase", { enum: STORAGE_PHASES }).notNull(),
  paused: integer("paused", { mode: "boolean" }).notNull().default(false),
  quick: integer("quick", { mode: "boolean" }).notNull().default(false),
  afterKey: text("after_key").notNull().default(""),
  objectsTotal: integer("objects_total"),
  bytesTotal: integer("bytes_total"),
  objectsDone: integer("objects_done").notNull().default(0),
  bytesDone: integer("bytes_done").notNull().default(0),
  objectsCopied: integer("objects_copied").notNull().default(0),
  bytesCopied: integer("bytes_copied").notNull().default(0),
  objectsVerified: integer("objects_verified").notNull().default(0),
  objectsFixed: integer("objects_mended").notNull().default(0),
  error: text("error"),
  startedAt: integer("started_at"),
  switchedAt: integer("switched_at"),
  finishedAt: integer("finished_at"),
  updatedAt: integer("updated_at").notNull(),
});

export type StorageLocationRow = typeof storageLocation.$inferSelect;
