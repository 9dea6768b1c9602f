import { createHmac } from "node:crypto";
import { and, asc, eq, lte } from "drizzle-orm";
import type { App } from "#app.ts";
import { memoizeByObject } from "#lib/base";
import { sealText, unsealText } from "#platform/config/sealed-text.ts";
import { isMailConfigured, MailFailure, sendMail } from "#platform/outbound/mail/smtp.ts";
import { afterCommit } from "#storage/db/after-commit.ts";
import type { Db } from "#storage/db/open.ts";
import { type MailKind, type MailRow, mails } from "#storage/db/schema.ts";

/*
 * Mail is a row before the response, and is sent by a scheduled task: a slow mail server delays no response, and a crash
 * loses no mail. After a crash in between, a mail may be sent twice.
 */

const AT_ONCE = 8;
/** Longer than an attempt takes: then another process may try. */
const CLAIM_MS = 120_000;
const DELAYS_MS = [5_000, 30_000, 120_000, 600_000, 1_800_000];

export type Content = { subject: string; text: string };

const keyOf = memoizeByObject((secrets: App["secrets"]) =>
  createHmac("sha256", secrets.signing_secret).update("mail").digest(),
);

type NewMail = {
  kind: MailKind;
  recipient: string;
  tenantId: number | null;
  content: Content | null;
  expiresAt: number;
};

/** Adds a mail to the outbox, in the transaction of its reason. Does nothing while no mail server is configured. */
export async function enqueueMail(tx: Db, app: App, { content, ...mail }: NewMail): Promise<void> {
  if (!isMailConfigured(app.config)) return;
  const now = app.clock.now();
  await tx.insert(mails).values({ ...mail, content: content && seal(app, content), dueAt: now, createdAt: now });
  afterCommit(tx, () => void app.signals.emit("mail.due"));
}

const seal = (app: App, content: Content) => sealText(keyOf(app.secrets), "mail", JSON.stringify(content));

/** Writes the content of a mail in a transaction, for kinds that have none at first; null when there is nothing to send. */
export type WriteContent = (tx: Db, app: App, row: MailRow) => Promise<{ content: Content; tenantId: number } | null>;

/** Sends all mail that is due. */
export async function sendMails(app: App, writers: Partial<Record<MailKind, WriteContent>>): Promise<void> {
  if (!isMailConfigured(app.config)) return;
  while (!app.stopping.aborted) {
    const due = await app.db
      .select({ id: mails.id })
      .from(mails)
      .where(lte(mails.dueAt, app.clock.now()))
      .orderBy(asc(mails.dueAt))
      .limit(AT_ONCE)
      .all();
    if (due.length === 0) return;
    const claimed = await app.write((tx) => claim(tx, app, due, writers));
    await Promise.all(claimed.map((row) => deliver(app, row)));
  }
}

/** The rows that are still due, with their contents. Those that have expired are deleted. */
async function claim(
  tx: Db,
  app: App,
  due: readonly { id: number }[],
  writers: Partial<Record<MailKind, WriteContent>>,
): Promise<MailRow[]> {
  const now = app.clock.now();
  const claimed: MailRow[] = [];
  for (const { id } of due) {
    const row = await tx
      .select()
      .from(mails)
      .where(and(eq(mails.id, id), lte(mails.dueAt, now)))
      .get();
    if (!row) continue;
    const written = row.content === null ? await writers[row.kind]?.(tx, app, row) : undefined;
    if (row.expiresAt <= now || written === null) {
      await tx.delete(mails).where(eq(mails.id, id));
      continue;
    }
    const set = {
      ...(written && { content: seal(app, written.content), tenantId: written.tenantId }),
      dueAt: now + CLAIM_MS,
      attempts: row.attempts + 1,
    };
    claimed.push(await tx.update(mails).set(set).where(eq(mails.id, id)).returning().get());
  }
  return claimed;
}

async function deliver(app: App, { id, kind, recipient, content, attempts }: MailRow): Promise<void> {
  try {
    const { subject, text } = JSON.parse(unsealText(keyOf(app.secrets), "mail", content as string)) as Content;
    await sendMail(app.config, { to: recipient, subject, text });
    await app.write((tx) => tx.delete(mails).where(eq(mails.id, id)));
  } catch (error) {
    const isFinal = !(error instanceof MailFailure) || error.isFinal;
    app.log.warn(
      { mail_id: id, kind, attempts, err: (error as Error).message },
      isFinal ? "a mail was refused and is not sent" : "a mail could not be sent; it is tried again",
    );
    const delay = DELAYS_MS[Math.min(attempts, DELAYS_MS.length) - 1] ?? 0;
    await app.write(async (tx) => {
      if (isFinal) await tx.delete(mails).where(eq(mails.id, id));
      else
        await tx
          .update(mails)
          .set({ dueAt: app.clock.now() + delay })
          .where(eq(mails.id, id));
    });
  }
}
