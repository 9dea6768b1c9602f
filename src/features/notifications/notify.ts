import { and, eq, gt, sql } from "drizzle-orm";
import type { App } from "#app.ts";
import type { NotificationKind } from "#model/enums.ts";
import { isMailConfigured } from "#platform/outbound/mail/smtp.ts";
import type { Db } from "#storage/db/open.ts";
import { type NotificationData, notifications, type UserRow, users } from "#storage/db/schema.ts";
import { enqueueMail } from "../mail/outbox.ts";
import { isReported } from "./kinds.ts";
import { notificationMail } from "./mail-texts.ts";

/** Newest notifications of a tenant that are kept. */
const MAX_KEPT = 200;
/** Those of quotas happen once a month, and are not repeated because they were deleted. */
const QUOTA_KEPT_MS = 32 * 24 * 3_600_000;
const MAX_TEXT = 500;
const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
/** The most mails of one kind to a tenant in an hour; further notifications are in the console only. */
const MAX_MAILED = 10;
const MAX_RECIPIENTS = 100;

type Occurrence = {
  tenantId: number;
  kind: NotificationKind;
  /** Names the occurrence in its tenant: the same one again is no second notification. */
  occurrence: string;
  /** Texts are cut to 500 characters. */
  data: NotificationData;
};

/**
 * Notifies the people of a tenant, in the transaction of the occurrence: in the console, and by mail to those who chose that.
 * Of an occurrence that was notified before nothing happens.
 */
export async function notify(tx: Db, app: App, { tenantId, kind, occurrence, data }: Occurrence): Promise<void> {
  const now = app.clock.now();
  const short = Object.fromEntries(
    Object.entries(data).map(([name, value]) => [name, typeof value === "string" ? value.slice(0, MAX_TEXT) : value]),
  );
  const inserted = await tx
    .insert(notifications)
    .values({ tenantId, kind, occurrence, data: short, createdAt: now })
    .onConflictDoNothing()
    .returning({ id: notifications.id })
    .get();
  if (!inserted) return;
  await tx.run(sql`
    DELETE FROM notifications WHERE tenant_id = ${tenantId} AND (kind <> 'quota' OR created_at < ${now - QUOTA_KEPT_MS})
      AND id <= (SELECT id FROM notifications WHERE tenant_id = ${tenantId} ORDER BY id DESC LIMIT 1 OFFSET ${MAX_KEPT})`);
  if (isMailConfigured(app.config)) await mail(tx, app, { tenantId, kind, data: short });
}

async function mail(tx: Db, app: App, { tenantId, kind, data }: Omit<Occurrence, "occurrence">): Promise<void> {
  const now = app.clock.now();
  const sameKind = and(eq(notifications.tenantId, tenantId), eq(notifications.kind, kind));
  const recent = await tx
    .select({ id: notifications.id })
    .from(notifications)
    .where(and(sameKind, gt(notifications.createdAt, now - HOUR_MS)))
    .limit(MAX_MAILED + 1)
    .all();
  if (recent.length > MAX_MAILED) return;
  for (const user of await recipientsOf(tx, tenantId, kind)) {
    const content = notificationMail(user.language, { kind, data, baseUrl: app.baseUrl() });
    const { emailAddress: recipient } = user;
    await enqueueMail(tx, app, { kind: "notification", recipient, tenantId, content, expiresAt: now + DAY_MS });
  }
}

async function recipientsOf(tx: Db, tenantId: number, kind: NotificationKind): Promise<UserRow[]> {
  const wantsMail = sql`${users.notificationSettings} ->> ${`$.${kind}.mail`}`;
  const chosen = await tx
    .select()
    .from(users)
    .where(and(eq(users.tenantId, tenantId), sql`${wantsMail} = 1`))
    .limit(MAX_RECIPIENTS)
    .all();
  return chosen.filter((user) => isReported(user, kind, "mail"));
}
