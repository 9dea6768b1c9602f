import { and, desc, eq, gt, ne } from "drizzle-orm";
import * as v from "valibot";
import type { App } from "#app.ts";
import { HttpError, iso, notFound } from "#lib/base";
import type { Caller, Session } from "#platform/http/caller.ts";
import { RecordIdInPath } from "#platform/http/parameters.ts";
import { Reply, route } from "#platform/http/route.ts";
import type { Db } from "#storage/db/open.ts";
import { type SessionRow, sessions, tenants, type UserRow, users } from "#storage/db/schema.ts";
import { attempt } from "../credentials/devices/attempts.ts";
import { hashPassword, isPassword } from "../credentials/devices/passwords.ts";
import { revokeDevices } from "../credentials/devices/revoke.ts";
import { requireFreeEmail } from "./queries.ts";
import { Me, MePatch, MySession, PasswordChange, toMe } from "./schema.ts";

const path = "/api/v1/me";
const shared = { tag: "Account", credential: "session", errors: { 404: ["not_found"] } } as const;
const CHANGE_ERRORS = { ...shared.errors, 403: ["cross_site", "csrf_token_required"] } as const;

/** The user who signed in, and the session. Throws 404 for a session of a key or of the admin token. */
export async function me(db: Db, caller: Caller): Promise<{ user: UserRow; session: Session }> {
  const userId = caller.kind === "key" ? caller.userId : undefined;
  const { session } = caller as { session?: Session };
  const user = userId === undefined ? undefined : await db.select().from(users).where(eq(users.id, userId)).get();
  return user && session ? { user, session } : notFound("user: this session was begun without a user");
}

const tenantName = async (db: Db, { tenantId }: UserRow) =>
  (await db.select({ name: tenants.name }).from(tenants).where(eq(tenants.id, tenantId)).get())?.name ?? "";

/** Sets a password. It ends the other sessions and the device tokens of the user. */
async function setPassword(tx: Db, app: App, { user, session }: { user: UserRow; session: Session }, hash: string) {
  const current = await tx.select().from(sessions).where(eq(sessions.id, session.id)).get();
  const set = { passwordHash: hash, updatedAt: app.clock.now() };
  await revokeDevices(tx, app, user.id);
  // A trigger ends all sessions.
  await tx.update(users).set(set).where(eq(users.id, user.id));
  if (current) await tx.insert(sessions).values(current);
}

const toMySession = (row: SessionRow, current: Session): v.InferInput<typeof MySession> => ({
  id: row.id,
  is_current: row.id === current.id,
  address: row.address,
  user_agent: row.userAgent,
  created_at: iso(row.createdAt),
  expires_at: iso(row.expiresAt),
});

export const meRoutes = [
  route({
    ...shared,
    method: "GET",
    path,
    operationId: "getMe",
    summary: "Get the user who is signed in",
    responses: { 200: Me },
    async handle({ app, caller }) {
      const { user } = await me(app.db, caller);
      return toMe(user, await tenantName(app.db, user));
    },
  }),
  route({
    ...shared,
    method: "PATCH",
    path,
    audited: true,
    operationId: "updateMe",
    summary: "Change one's own name, e-mail address, or language and theme of the console",
    body: MePatch,
    responses: { 200: Me },
    errors: CHANGE_ERRORS,
    handle: ({ app, caller, body }) =>
      app.write(async (tx) => {
        const { user } = await me(tx, caller);
        const { email = user.emailAddress, name = user.name, language = user.language, theme = user.theme } = body;
        await requireFreeEmail(tx, email, user.id);
        const isEmailOwn = user.isEmailOwn || email !== user.emailAddress;
        const set = { emailAddress: email, isEmailOwn, name, language, theme, updatedAt: app.clock.now() };
        const changed = await tx.update(users).set(set).where(eq(users.id, user.id)).returning().get();
        return toMe(changed, await tenantName(tx, user));
      }),
  }),
  route({
    ...shared,
    method: "POST",
    path: `${path}/password`,
    audited: true,
    operationId: "changeMyPassword",
    summary: "Change one's own password; other sessions and the device tokens of the user end",
    body: PasswordChange,
    responses: { 204: null },
    errors: {
      ...shared.errors,
      403: ["wrong_password", "cross_site", "csrf_token_required"],
      429: ["rate_limited"],
      503: ["busy"],
    },
    async handle({ app, caller, address, body }) {
      const { user } = await me(app.db, caller);
      // Counted for the user too: who has taken over a session must not guess from many addresses.
      const change = async () => {
        if (!(await isPassword(body.current_password, user.passwordHash))) return wrongPassword();
        const hash = await hashPassword(body.new_password);
        await app.write(async (tx) => {
          const now = await me(tx, caller);
          if (now.user.passwordHash !== user.passwordHash) return wrongPassword();
          await setPassword(tx, app, now, hash);
        });
      };
      await attempt(app, address, () => attempt(app, `user:${user.id}`, change));
      return new Reply(204, undefined);
    },
  }),
  route({
    ...shared,
    method: "GET",
    path: `${path}/sessions`,
    operationId: "listMySessions",
    summary: "List one's own sessions, newest first",
    responses: { 200: v.array(MySession) },
    async handle({ app, caller }) {
      const { user, session } = await me(app.db, caller);
      const own = and(eq(sessions.userId, user.id), gt(sessions.expiresAt, app.clock.now()));
      const rows = await app.db.select().from(sessions).where(own).orderBy(desc(sessions.id)).limit(1001).all();
      return rows.map((row) => toMySession(row, session));
    },
  }),
  route({
    ...shared,
    method: "DELETE",
    path: `${path}/sessions`,
    audited: true,
    operationId: "endMyOtherSessions",
    summary: "End one's own sessions except for the current one",
    responses: { 204: null },
    errors: CHANGE_ERRORS,
    handle: ({ app, caller }) =>
      app.write(async (tx) => {
        const { user, session } = await me(tx, caller);
        await tx.delete(sessions).where(and(eq(sessions.userId, user.id), ne(sessions.id, session.id)));
      }),
  }),
  route({
    ...shared,
    method: "DELETE",
    path: `${path}/sessions/:id`,
    audited: true,
    operationId: "endMySession",
    summary: "End one of one's own sessions",
    params: v.object({ id: RecordIdInPath }),
    responses: { 204: null },
    errors: CHANGE_ERRORS,
    handle: ({ app, caller, params }) =>
      app.write(async (tx) => {
        const { user } = await me(tx, caller);
        const own = and(eq(sessions.userId, user.id), eq(sessions.id, params.id));
        if (!(await tx.delete(sessions).where(own).returning().get())) notFound("session");
      }),
  }),
];

function wrongPassword(): never {
  throw new HttpError(403, "wrong_password", "The current password is wrong.");
}
