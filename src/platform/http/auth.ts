import { eq, sql } from "drizzle-orm";
import type { App } from "#app.ts";
import { HttpError, sameSecret, sha256 } from "#lib/base";
import type { Role } from "#model/enums.ts";
import { cacheUntilCommit } from "#storage/db/commit-cache.ts";
import type { Db } from "#storage/db/open.ts";
import { apiKeys, tenants } from "#storage/db/schema.ts";
import { batchOfToken } from "./batch-token.ts";
import type { Caller } from "./caller.ts";
import { requireRole, scopesWithin } from "./roles.ts";
import type { Route } from "./route.ts";
import { createSessions } from "./session.ts";

/** The parts of a request that may contain a credential. */
export type Credentials = {
  headers: Headers;
  query: URLSearchParams;
  method: string;
  /** The client's address, which is recorded as that of the last use of a key. */
  address: () => string;
};
/** The last use of a key: milliseconds since the epoch, and from where. */
type KeyUse = { at: number; address: string };

export type Authenticator = {
  /**
   * By header, else by the session cookie where a key or the admin token is accepted. Reads only headers, and the query where the gateway's token may be: the body of an unauthenticated request is never
   * read. Throws 401 or 403.
   */
  authenticate(route: Route, request: Credentials): Promise<Caller>;
  /** Returns the keys used since the last call with their last use, for the caller to store. */
  takeUsedKeys(): Map<number, KeyUse>;
};

const unauthorized = (message: string): never => {
  throw new HttpError(401, "unauthorized", message);
};

const findKey = (db: Db) =>
  db
    .select({
      id: apiKeys.id,
      tenantId: apiKeys.tenantId,
      scopes: apiKeys.scopes,
      expiresAt: apiKeys.expiresAt,
      revokedAt: apiKeys.revokedAt,
      tenantStatus: tenants.status,
      role: sql<Role | null>`(SELECT role FROM users WHERE id = ${apiKeys.userId})`,
    })
    .from(apiKeys)
    .innerJoin(tenants, eq(tenants.id, apiKeys.tenantId))
    .where(eq(apiKeys.tokenHash, sql.placeholder("hash")))
    .prepare();

export function createAuthenticator(app: App): Authenticator {
  const statement = findKey(app.db);
  const keyByHash = cacheUntilCommit(app.commits, (hash: string) => statement.get({ hash }));
  const sessions = createSessions(app);
  let used = new Map<number, KeyUse>();

  const isAdmin = (token: string) => sameSecret(token, app.secrets.admin_token);

  async function fromKey(token: string, address: () => string): Promise<Caller> {
    const key = await keyByHash(sha256(token));
    const now = app.clock.now();
    // One message for all of these, so that the response does not reveal which keys exist.
    if (
      !key ||
      key.revokedAt !== null ||
      (key.expiresAt !== null && key.expiresAt <= now) ||
      key.tenantStatus !== "active"
    ) {
      return unauthorized("The API key is missing, unknown, revoked or expired.");
    }
    used.set(key.id, { at: now, address: address() });
    const role = key.role ?? undefined;
    const scopes = scopesWithin(role, key.scopes);
    return { kind: "key", keyId: key.id, tenantId: key.tenantId, scopes, ...(role && { role }) };
  }

  /** The caller of a session that may use the route; null without a session. */
  async function fromSession(route: Route, headers: Headers, method: string): Promise<Caller | null> {
    const caller = await sessions.callerOf(headers, method);
    if (caller?.kind === "key" && route.credential !== "key")
      throw new HttpError(401, "unauthorized", "This needs a session of the admin token.");
    return caller;
  }

  type Given = Credentials & { route: Route };

  const bearerOf = (headers: Headers) => /^Bearer +(\S+)$/i.exec(headers.get("authorization") ?? "")?.[1];

  function fromGateway({ headers, query }: Given): Caller {
    const token = gatewayToken(headers, query);
    if (token !== null && sameSecret(token, app.secrets.live_token)) return { kind: "gateway" };
    return unauthorized("Send the live gateway token in X-SVC-LIVE-TOKEN.");
  }

  function fromWorker({ headers }: Given): Caller {
    const worker = headers.get("x-svc-worker-token");
    if (worker !== null && sameSecret(worker, app.secrets.worker_token)) return { kind: "worker" };
    return unauthorized("Send the worker token in X-SVC-WORKER-TOKEN.");
  }

  /** An operator, by the admin token as a bearer or by a session; else `otherwise` may know the bearer. */
  async function fromOperator(
    { route, headers, method }: Given,
    missing: string,
    otherwise: (bearer: string) => Caller | null = () => null,
  ): Promise<Caller> {
    const bearer = bearerOf(headers);
    if (bearer === undefined) return (await fromSession(route, headers, method)) ?? unauthorized(missing);
    if (isAdmin(bearer)) return { kind: "admin" };
    return otherwise(bearer) ?? unauthorized(missing);
  }

  const asMetrics = (bearer: string): Caller | null =>
    sameSecret(bearer, app.secrets.metrics_token) ? { kind: "metrics" } : null;

  /** The caller by a token that routes of several credentials accept; null without one. */
  async function fromCommonToken({ route, headers }: Given): Promise<Caller | null> {
    const admin = headers.get("x-svc-admin-token");
    if (admin !== null) return isAdmin(admin) ? { kind: "admin" } : unauthorized("The admin token is wrong.");
    const batch = route.batchToken ? headers.get("x-svc-batch-token") : null;
    if (batch === null) return null;
    return (await batchOfToken(app, batch)) ?? unauthorized("The batch token is wrong or its lease has expired.");
  }

  async function identify(given: Given): Promise<Caller> {
    const { route, headers, method } = given;
    const { credential } = route;
    if (credential === "none" || credential === "signed") return { kind: "anyone" };
    if (credential === "gateway") return fromGateway(given);
    if (credential === "session")
      return (await sessions.callerOf(headers, method)) ?? unauthorized("There is no session; sign in.");
    const common = await fromCommonToken(given);
    if (common) return common;
    if (credential === "worker") return fromWorker(given);
    if (credential === "metrics")
      return fromOperator(given, "Send the metrics token as Authorization: Bearer.", asMetrics);
    if (credential === "admin") return fromOperator(given, "Send the admin token in X-SVC-ADMIN-TOKEN.");
    const token = headers.get("x-api-key") ?? bearerOf(headers);
    if (token) return fromKey(token, given.address);
    return (await fromSession(route, headers, method)) ?? unauthorized("Send an API key in X-API-Key.");
  }

  return {
    async authenticate(route, credentials) {
      const { headers, method } = credentials;
      const caller = await identify({ route, ...credentials });
      requireRole(route, caller, method);
      if (
        caller.kind === "key" &&
        route.scopes.length > 0 &&
        !route.scopes.some((scope) => caller.scopes.includes(scope))
      ) {
        throw new HttpError(403, "forbidden_scope", "insufficient_scope", { required_scopes: [...route.scopes] });
      }
      if (route.lease && !headers.get("x-svc-job-lease-token"))
        unauthorized("Send the lease token in X-SVC-JOB-LEASE-TOKEN.");
      return caller;
    },
    takeUsedKeys() {
      const keys = used;
      used = new Map();
      return keys;
    },
  };
}

/**
 * MediaMTX cannot send headers, only what its URL contains: `http://any:TOKEN@…` or `?token=TOKEN`. The first one
 * present counts.
 */
function gatewayToken(headers: Headers, query: URLSearchParams): string | null {
  const own = headers.get("x-svc-live-token");
  if (own !== null) return own;
  const [, scheme = "", value = ""] = /^(Bearer|Basic) +(\S+)$/i.exec(headers.get("authorization") ?? "") ?? [];
  if (/^bearer$/i.test(scheme)) return value;
  // RFC 7617: everything after the first colon is the password.
  if (scheme !== "") return /:(.*)/s.exec(Buffer.from(value, "base64").toString("utf8"))?.[1] ?? "";
  return query.get("token");
}
