import { NOTIFICATION_KINDS, type NotificationKind, type Role } from "#model/enums.ts";
import type { UserRow } from "#storage/db/schema.ts";

/** The roles that may know of each kind: an editor has no part in webhooks and billing. */
const ROLES_OF: Record<NotificationKind, readonly Role[]> = {
  encode_failed: ["admin", "editor", "viewer"],
  live_signal_lost: ["admin", "editor", "viewer"],
  quota: ["admin"],
  webhook_disabled: ["admin"],
};

const USUAL = { console: true, mail: false };
export type Place = keyof typeof USUAL;

/** The kinds that a role may know of. */
export const kindsFor = (role: Role): NotificationKind[] =>
  NOTIFICATION_KINDS.filter((kind) => ROLES_OF[kind].includes(role));

/** Where a kind is reported to a user. */
export const settingOf = ({ notificationSettings }: Pick<UserRow, "notificationSettings">, kind: NotificationKind) =>
  notificationSettings[kind] ?? USUAL;

/** Whether a kind is reported to a user there, by role and own choice. */
export const isReported = (user: Pick<UserRow, "role" | "notificationSettings">, kind: NotificationKind, at: Place) =>
  ROLES_OF[kind].includes(user.role) && settingOf(user, kind)[at];
