import { eq, sql } from "drizzle-orm";
import type { App } from "#app.ts";
import { HttpError, hmac, sameSecret, sha256 } from "#lib/base";
import type { Role } from "#model/enums.ts";
import { cacheUntilCommit } from "#storage/db/commit-cache.ts";
import type { Db } from "#storage/db/open.ts";
import { type SessionRow, sessions } from "#storage/db/schema.ts";
import { type Caller, SCOPES } from "./caller.ts";
import { isSecureRequest, readCookie, setCookie } from "./cookies.ts";
import { requireSameOrigin } from "./cross-site.ts";
import { scopesWithin } from "./roles.ts";

/** Browser sessions: a cookie in place of a credential header. */

export const SESSION_COOKIE = "vodbox_session";
export const IDLE_MS = 12 * 3_600_000;
/** A use within this time of the last one is not stored: a page sends many requests at once. */
const TOUCH_MS = 5 * 60_000;

/** What a page sends with each change. Derived from the token, which pages of other origins and scripts cannot read. */
export const csrfTokenOf = (token: string) => hmac(token, "csrf");
/** Binds a session to the admin token of its start. Without the session's token it says nothing about the admin token. */
export const adminMarkOf = (token: string, adminToken: string) => hmac(token, adminToken);

/** The cookie of a session; with an empty value, its end. */
export const cookieOf = (value: string, { headers, baseUrl }: { headers: Headers; baseUrl: string }): string =>
  setCookie({
    name: SESSION_COOKIE,
    value,
    path: "/",
    sameSite: "Strict",
    isSecure: isSecureRequest(headers, baseUrl),
  });

const isChange = (method: string) => method !== "GET" && method !== "HEAD" && method !== "OPTIONS";

const findSession = (db: Db) =>
  db
    .select({
      session: sessions,
      scopes: sql<string | null>`(SELECT scopes FROM api_keys WHERE id = ${sessions.apiKeyId})`,
      role: sql<Role | null>`(SELECT role FROM users WHERE id = ${sessions.userId})`,
    })
    .from(sessions)
    .where(eq(sessions.tokenHash, sql.placeholder("hash")))
    .prepare();

export type Sessions = {
  /**
   * The caller of a request with a session cookie; null without the cookie. Throws 401 when the session has ended and
   * 403 for a change by a page of another origin, or without the session's CSRF token.
   */
  callerOf(headers: Headers, method: string): Promise<Caller | null>;
};

export function createSessions(app: App): Sessions {
  const statement = findSession(app.db);
  const byHash = cacheUntilCommit(app.commits, (hash: string) => statement.get({ hash }));
  const touching = new Set<number>();

  function touch({ id, expiresAt, endsAt }: SessionRow, now: number): void {
    const next = Math.min(now + IDLE_MS, endsAt ?? Number.POSITIVE_INFINITY);
    if (next - expiresAt < TOUCH_MS || touching.has(id)) return;
    touching.add(id);
    const stored = app.write((tx) => tx.update(sessions).set({ expiresAt: next }).where(eq(sessions.id, id)));
    stored
      .catch((error) => app.log.warn({ err: error }, "the use of a session could not be stored"))
      .finally(() => touching.delete(id));
  }

  return {
    async callerOf(headers, method) {
      const token = readCookie(headers, SESSION_COOKIE);
      if (token === null) return null;
      const found = await byHash(sha256(token));
      const now = app.clock.now();
      const isOfAdmin = (mark: string) => sameSecret(mark, adminMarkOf(token, app.secrets.admin_token));
      // Keys, users and tenants end their sessions by triggers of the database.
      if (
        !found ||
        found.session.expiresAt <= now ||
        (found.session.adminMark !== null && !isOfAdmin(found.session.adminMark))
      )
        throw new HttpError(401, "unauthorized", "The session has ended; sign in again.");
      const csrfToken = csrfTokenOf(token);
      if (isChange(method)) requireSameOrigin(headers, app.baseUrl());
      if (isChange(method) && !sameSecret(headers.get("x-csrf-token") ?? "", csrfToken))
        throw new HttpError(403, "csrf_token_required", "Send the session's CSRF token in X-CSRF-Token.");
      touch(found.session, now);
      const { id, expiresAt, tenantId, apiKeyId, userId } = found.session;
      const session = { id, csrfToken, expiresAt };
      if (tenantId === null) return { kind: "admin", session };
      const role = found.role ?? undefined;
      const scopes = scopesWithin(role, found.scopes === null ? SCOPES : (JSON.parse(found.scopes) as string[]));
      const ofUser = { ...(userId !== null && { userId }), ...(role && { role }) };
      return { kind: "key", keyId: apiKeyId, tenantId, scopes, session, ...ofUser };
    },
  };
}
