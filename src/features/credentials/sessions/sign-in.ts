import { and, desc, eq, isNull, sql } from "drizzle-orm";
import type { App } from "#app.ts";
import { HttpError, iso, randomName, sameSecret, sha256 } from "#lib/base";
import type { Role } from "#model/enums.ts";
import { attributeTo } from "#platform/http/audit.ts";
import { SCOPES, type Session } from "#platform/http/caller.ts";
import { scopesWithin } from "#platform/http/roles.ts";
import { adminMarkOf, csrfTokenOf, IDLE_MS } from "#platform/http/session.ts";
import type { Db } from "#storage/db/open.ts";
import { apiKeys, type SessionRow, sessions, tenants, type UserRow } from "#storage/db/schema.ts";
import { attemptCode } from "../devices/attempts.ts";
import { withUser } from "../devices/authenticate.ts";
import type { Credential } from "./schema.ts";

/** Sessions of one key, user or the admin token; further ones end the oldest. */
const MAX_SESSIONS = 1000;
const TOKEN_LENGTH = 43;

/** One message for all, so that it does not reveal which keys and users exist. */
const refuse = (): never => {
  throw new HttpError(401, "unauthorized", "These credentials are wrong, revoked or expired.");
};

/** A session that has begun; `token` is the cookie's value, of which only a hash is stored. */
export type NewSession = SessionRow & { token: string; scopes: readonly string[]; role: Role | null };

/** What a person recognizes a session by. */
export type SessionClient = { address: string; userAgent: string | null };

/** Begins a session for one credential. Throws 401 for a wrong one and 422 for none or several. */
export async function signIn(app: App, given: Credential, client: SessionClient): Promise<NewSession> {
  const { admin_token, api_key, email, password, totp } = given;
  const kinds = [admin_token, api_key, email ?? password].filter((one) => one !== undefined);
  const isPair = (email === undefined) === (password === undefined);
  if (kinds.length !== 1 || !isPair)
    throw new HttpError(422, "parameter_missing", "Send an admin_token, an api_key, or email and password.", {
      details: { admin_token: ["or api_key, or email and password: exactly one is required"] },
    });
  if (admin_token !== undefined) {
    if (!sameSecret(admin_token, app.secrets.admin_token)) return refuse();
    return app.write((tx) => insertAdminSession(tx, app, client));
  }
  if (api_key !== undefined) return withKey(app, api_key, client);
  return withPassword(app, { email: email as string, password: password as string, totp }, client);
}

function withPassword(
  app: App,
  given: { email: string; password: string; totp: string | undefined },
  client: SessionClient,
): Promise<NewSession> {
  const work = async (tx: Db, user: UserRow) =>
    (await isActive(tx, user.tenantId)) ? insertUserSession(tx, app, user, client) : refuse();
  const begin = () => withUser(app, given, { refuse, work });
  return given.totp === undefined ? begin() : attemptCode(app, given.email, begin);
}

function withKey(app: App, token: string, client: SessionClient): Promise<NewSession> {
  return app.write(async (tx) => {
    const now = app.clock.now();
    const valid = and(eq(apiKeys.tokenHash, sha256(token)), isNull(apiKeys.revokedAt));
    const key = await tx.select().from(apiKeys).where(valid).get();
    if (!key || (key.expiresAt !== null && key.expiresAt <= now) || !(await isActive(tx, key.tenantId)))
      return refuse();
    const session = { subject: "api_key", tenantId: key.tenantId, apiKeyId: key.id, endsAt: key.expiresAt } as const;
    return insertSession(tx, app, { ...session, ...client }, { scopes: key.scopes, role: null });
  });
}

export function insertUserSession(
  tx: Db,
  app: App,
  { id, tenantId, role }: Pick<UserRow, "id" | "tenantId" | "role">,
  client: SessionClient,
): Promise<NewSession> {
  attributeTo(id);
  const session = { subject: "user", tenantId, userId: id, ...client } as const;
  return insertSession(tx, app, session, { scopes: scopesWithin(role, SCOPES), role });
}

const insertAdminSession = (tx: Db, app: App, client: SessionClient) =>
  insertSession(tx, app, { subject: "admin", ...client }, { scopes: SCOPES, role: null });

const isActive = async (tx: Db, tenantId: number) =>
  (await tx.select({ status: tenants.status }).from(tenants).where(eq(tenants.id, tenantId)).get())?.status ===
  "active";

type Begun = Pick<SessionRow, "subject" | "address" | "userAgent"> &
  Partial<Pick<SessionRow, "tenantId" | "apiKeyId" | "userId" | "endsAt">>;

async function insertSession(
  tx: Db,
  app: App,
  begun: Begun,
  may: Pick<NewSession, "scopes" | "role">,
): Promise<NewSession> {
  const now = app.clock.now();
  const token = randomName(TOKEN_LENGTH);
  const row = await tx
    .insert(sessions)
    .values({
      ...begun,
      tokenHash: sha256(token),
      adminMark: begun.subject === "admin" ? adminMarkOf(token, app.secrets.admin_token) : null,
      expiresAt: Math.min(now + IDLE_MS, begun.endsAt ?? Number.POSITIVE_INFINITY),
      createdAt: now,
    })
    .returning()
    .get();
  await endOldest(tx, row);
  return { ...row, token, ...may };
}

async function endOldest(tx: Db, { subject, apiKeyId, userId }: SessionRow): Promise<void> {
  const same = and(
    eq(sessions.subject, subject),
    sql`${sessions.apiKeyId} IS ${apiKeyId}`,
    sql`${sessions.userId} IS ${userId}`,
  );
  const oldest = tx.select({ id: sessions.id }).from(sessions).where(same).orderBy(desc(sessions.id));
  const excess = await oldest.limit(1).offset(MAX_SESSIONS).get();
  if (excess) await tx.delete(sessions).where(and(same, sql`${sessions.id} <= ${excess.id}`));
}

/** The response of every route that answers with a session. */
export const toSession = (
  { subject, tenantId, scopes, role }: Pick<NewSession, "subject" | "tenantId" | "scopes" | "role">,
  { csrfToken, expiresAt }: Pick<Session, "csrfToken" | "expiresAt">,
) => ({ subject, tenant_id: tenantId, role, scopes: [...scopes], csrf_token: csrfToken, expires_at: iso(expiresAt) });

export const toNewSession = ({ token, ...row }: NewSession) =>
  toSession(row, { csrfToken: csrfTokenOf(token), expiresAt: row.expiresAt });
