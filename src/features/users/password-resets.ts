import { and, eq, isNull, sql } from "drizzle-orm";
import * as v from "valibot";
import { type App, forApp } from "#app.ts";
import { HttpError, iso, notFound, randomName, sha256 } from "#lib/base";
import { attributeTo } from "#platform/http/audit.ts";
import { countWindows } from "#platform/http/limits.ts";
import { Reply, route } from "#platform/http/route.ts";
import { Name } from "#platform/http/schemas.ts";
import { isMailConfigured } from "#platform/outbound/mail/smtp.ts";
import { deleteInSlices } from "#platform/scheduled-tasks/delete-in-slices.ts";
import { describedAs } from "#protocol/fields.ts";
import { CodeField, ExpiresAt, RefField } from "#protocol/record-fields.ts";
import type { Db } from "#storage/db/open.ts";
import { type MailRow, passwordResets, tenants, type UserRow, users } from "#storage/db/schema.ts";
import { hashPassword } from "../credentials/devices/passwords.ts";
import { revokeDevices } from "../credentials/devices/revoke.ts";
import { findUser } from "../credentials/devices/routes.ts";
import { EmailAddress, NewPassword } from "../credentials/devices/schema.ts";
import { enqueueMail } from "../mail/outbox.ts";
import { resetMail } from "../mail/texts.ts";
import { EmailField } from "./record-fields.ts";

const HOUR_MS = 3_600_000;
const LIVES_MS = HOUR_MS;
/** So long the link of an ended one says that it has ended. */
const KEPT_MS = 30 * 24 * HOUR_MS;
const CODE_LENGTH = 32;
/** Mails to one address. */
const PER_EMAIL = { requests: 3, seconds: 3600 };

const path = "/api/v1/password_resets";
const shared = { tag: "Account", credential: "none", method: "POST" } as const;
const Code = v.object({ code: describedAs(CodeField, Name(100)) });

/** Requests beyond these are answered alike, and nothing is sent. */
const limits = forApp(({ config, cache: { redis } }) => ({
  ofEmail: countWindows(PER_EMAIL, { name: "reset-email", redis }),
  ofAddress: countWindows(config.rate_limit_session, { name: "reset-address", redis }),
}));

async function isLimited(app: App, address: string, email: string): Promise<boolean> {
  const { ofEmail, ofAddress } = limits(app);
  const one = await ofAddress.countAddress(address);
  const other = await ofEmail.countAddress(`reset:${email}`);
  return one.exceeded || other.exceeded;
}

async function newReset(tx: Db, app: App, userId: number): Promise<{ url: string; expiresAt: number }> {
  const code = randomName(CODE_LENGTH);
  const now = app.clock.now();
  const expiresAt = now + LIVES_MS;
  await tx.insert(passwordResets).values({ userId, codeHash: sha256(code), expiresAt, createdAt: now });
  return { url: `${app.baseUrl()}/console/reset/${code}`, expiresAt };
}

/** The user of a code. Throws 404 for an unknown one and 410 for one that has ended. */
async function requireOpen(db: Db, app: App, code: string): Promise<{ resetId: number; user: UserRow }> {
  const found = await db
    .select()
    .from(passwordResets)
    .innerJoin(users, eq(users.id, passwordResets.userId))
    .innerJoin(tenants, eq(tenants.id, users.tenantId))
    .where(eq(passwordResets.codeHash, sha256(code)))
    .get();
  if (!found) return notFound("password reset");
  const { password_resets: reset, users: user, tenants: tenant } = found;
  if (reset.usedAt !== null || reset.expiresAt <= app.clock.now() || tenant.status !== "active")
    throw new HttpError(410, "reset_ended", "This link was used already or has expired; request a new one.");
  return { resetId: reset.id, user };
}

export const passwordResetRoutes = [
  route({
    ...shared,
    path,
    // Nothing is changed yet, and the address may belong to no user.
    audited: false,
    operationId: "requestPasswordReset",
    summary: "Request a link to set a new password by mail; the response does not reveal whether there is such a user",
    body: v.object({ email: describedAs(EmailField, EmailAddress) }),
    responses: { 202: null },
    async handle({ app, address, body: { email } }) {
      // The same work for every address: whose it is, is looked up when the mail is written.
      if (isMailConfigured(app.config) && !(await isLimited(app, address, email))) {
        const mail = { kind: "password_reset", recipient: email, tenantId: null, content: null } as const;
        await app.write((tx) => enqueueMail(tx, app, { ...mail, expiresAt: app.clock.now() + LIVES_MS }));
      }
      return new Reply(202, undefined);
    },
  }),
  route({
    ...shared,
    path: `${path}/:code`,
    audited: true,
    operationId: "resetPassword",
    summary: "Set a new password with the code of a link; sessions and device tokens of the user end",
    params: Code,
    body: v.object({ new_password: NewPassword }),
    responses: { 204: null },
    errors: { 404: ["not_found"], 410: ["reset_ended"], 503: ["busy"] },
    async handle({ app, params, body }) {
      await requireOpen(app.db, app, params.code);
      const passwordHash = await hashPassword(body.new_password);
      await app.write(async (tx) => {
        const { user } = await requireOpen(tx, app, params.code);
        const now = app.clock.now();
        attributeTo(user.id);
        const open = and(eq(passwordResets.userId, user.id), isNull(passwordResets.usedAt));
        await tx.update(passwordResets).set({ usedAt: now }).where(open);
        await revokeDevices(tx, app, user.id);
        // A trigger ends all sessions. The second factor stays on.
        await tx.update(users).set({ passwordHash, updatedAt: now }).where(eq(users.id, user.id));
        return { tenantId: user.tenantId };
      });
      return new Reply(204, undefined);
    },
  }),
  route({
    method: "POST",
    path: "/api/v1/admin/users/:ref/reset_link",
    credential: "admin",
    tag: "Operator",
    audited: true,
    operationId: "createResetLink",
    summary: "Create a link with which a user sets a new password, valid once, for an hour",
    params: v.object({ ref: RefField }),
    responses: {
      201: v.pipe(
        v.object({ url: v.pipe(v.string(), v.description("It is shown only here")), expires_at: ExpiresAt }),
        v.title("ResetLink"),
      ),
    },
    errors: { 404: ["not_found"] },
    handle: ({ app, params }) =>
      app.write(async (tx) => {
        const user = (await findUser(tx, params.ref)) ?? notFound("user");
        const { url, expiresAt } = await newReset(tx, app, user.id);
        return { url, expires_at: iso(expiresAt) };
      }),
  }),
];

/** Writes the mail of a requested reset; null where the address belongs to no user of an active tenant. */
export async function writeResetMail(tx: Db, app: App, { recipient }: MailRow) {
  const found = await tx
    .select()
    .from(users)
    .innerJoin(tenants, eq(tenants.id, users.tenantId))
    .where(and(eq(users.emailAddress, recipient), eq(tenants.status, "active")))
    .get();
  if (!found) return null;
  const { url } = await newReset(tx, app, found.users.id);
  return { content: resetMail(found.users.language, url), tenantId: found.users.tenantId };
}

/** Deletes resets that ended long ago. */
export const prunePasswordResets = (app: App): Promise<number> =>
  deleteInSlices(app, { table: "password_resets", where: sql`expires_at <= ${app.clock.now() - KEPT_MS}` });
