import { integer, sqliteTable, text } from "drizzle-orm/sqlite-core";
import { type NotificationKind, ROLES, THEMES } from "#model/enums.ts";
import { id, times } from "./columns.ts";

type NotificationSettings = Partial<Record<NotificationKind, { console: boolean; mail: boolean }>>;

export const users = sqliteTable("users", {
  id: id(),
  tenantId: integer("tenant_id").notNull(),
  emailAddress: text("email_address").notNull(),
  /** The user has set the address, which no one has confirmed. */
  isEmailOwn: integer("is_email_own", { mode: "boolean" }).notNull().default(false),
  passwordHash: text("password_hash").notNull(),
  role: text("role", { enum: ROLES }).notNull().default("admin"),
  name: text("name"),
  /** Language and theme of the console; null: the browser's. */
  language: text("language"),
  theme: text("theme", { enum: THEMES }),
  /** Where each kind is reported; absent: in the console only. */
  notificationSettings: text("notification_settings", { mode: "json" })
    .$type<NotificationSettings>()
    .notNull()
    .default({}),
  /** The secret of the second factor, encrypted; null: off. */
  totpSecret: text("totp_secret"),
  /** Not confirmed yet. */
  totpPending: text("totp_pending"),
  /** The step of the last code that was accepted. */
  totpStep: integer("totp_step").notNull().default(0),
  ...times,
});

export type UserRow = typeof users.$inferSelect;
