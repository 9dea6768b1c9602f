import { eq, sql } from "drizzle-orm";
import { cacheUntilCommit } from "../../storage/db/commit-cache.ts";
import type { Db } from "../../storage/db/open.ts";
import { apiKeys, tenants } from "../../storage/db/schema.ts";
import type { App } from "../app.ts";
import { HttpError } from "../lib/errors.ts";
import { sameSecret, sha256 } from "../lib/tokens.ts";
import { batchOfToken } from "./batch-token.ts";
import type { Caller } from "./caller.ts";
import type { Route } from "./route.ts";

export type Authenticator = {
  /** Reads headers alone, and the query where the gateway's token may stand: a stranger's body is never looked at. Throws 401 or 403. */
  authenticate(route: Route, headers: Headers, query: URLSearchParams): Promise<Caller>;
  /** Keys used since the last call, with the time of use; the caller writes them down. */
  takeUsedKeys(): Map<number, number>;
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
    })
    .from(apiKeys)
    .innerJoin(tenants, eq(tenants.id, apiKeys.tenantId))
    .where(eq(apiKeys.tokenHash, sql.placeholder("hash")))
    .prepare();

export function createAuthenticator(app: App): Authenticator {
  const statement = findKey(app.db);
  const keyByHash = cacheUntilCommit(app.commits, (hash: string) => statement.get({ hash }));
  let used = new Map<number, number>();

  const isAdmin = (given: string) => sameSecret(given, app.secrets.admin_token);

  async function fromKey(token: string): Promise<Caller> {
    const key = await keyByHash(sha256(token));
    const now = app.clock.now();
    // One message for all of these: a stranger learns nothing about which keys exist.
    if (
      !key ||
      key.revokedAt !== null ||
      (key.expiresAt !== null && key.expiresAt <= now) ||
      key.tenantStatus !== "active"
    ) {
      return unauthorized("The API key is missing, unknown, revoked or expired.");
    }
    used.set(key.id, now);
    return { kind: "key", keyId: key.id, tenantId: key.tenantId, scopes: key.scopes };
  }

  async function identify(route: Route, headers: Headers, query: URLSearchParams): Promise<Caller> {
    if (route.credential === "none" || route.credential === "signed") return { kind: "anyone" };
    if (route.credential === "gateway") {
      const given = gatewayToken(headers, query);
      if (given !== null && sameSecret(given, app.secrets.live_token)) return { kind: "gateway" };
      return unauthorized("This call needs the live gateway's token in X-SVC-LIVE-TOKEN.");
    }
    const admin = headers.get("x-svc-admin-token");
    if (admin !== null) return isAdmin(admin) ? { kind: "admin" } : unauthorized("The admin token is wrong.");
    const batch = route.batchToken ? headers.get("x-svc-batch-token") : null;
    if (batch !== null)
      return (await batchOfToken(app, batch)) ?? unauthorized("The batch token is wrong, or its lease has run out.");
    const bearer = /^Bearer +(\S+)$/i.exec(headers.get("authorization") ?? "")?.[1];
    if (route.credential === "worker") {
      const worker = headers.get("x-svc-worker-token");
      if (worker !== null && sameSecret(worker, app.secrets.worker_token)) return { kind: "worker" };
      return unauthorized("This call needs the worker token in X-SVC-WORKER-TOKEN.");
    }
    if (route.credential === "admin") {
      if (bearer !== undefined && isAdmin(bearer)) return { kind: "admin" };
      return unauthorized("This call needs the admin token in X-SVC-ADMIN-TOKEN.");
    }
    const token = headers.get("x-api-key") ?? bearer;
    if (!token) return unauthorized("Send an API key in X-API-Key.");
    return fromKey(token);
  }

  return {
    async authenticate(route, headers, query) {
      const caller = await identify(route, headers, query);
      if (
        caller.kind === "key" &&
        route.scopes.length > 0 &&
        !route.scopes.some((scope) => caller.scopes.includes(scope))
      ) {
        throw new HttpError(403, "forbidden_scope", "insufficient_scope", { required_scopes: [...route.scopes] });
      }
      if (route.lease && !headers.get("x-svc-job-lease-token"))
        unauthorized("This call needs the lease token in X-SVC-JOB-LEASE-TOKEN.");
      return caller;
    },
    takeUsedKeys() {
      const taken = used;
      used = new Map();
      return taken;
    },
  };
}

/** MediaMTX sends no headers of its own, but what its address says: `http://any:TOKEN@…` or `?token=TOKEN`. The first that is given counts. */
function gatewayToken(headers: Headers, query: URLSearchParams): string | null {
  const own = headers.get("x-svc-live-token");
  if (own !== null) return own;
  const [, scheme = "", value = ""] = /^(Bearer|Basic) +(\S+)$/i.exec(headers.get("authorization") ?? "") ?? [];
  if (/^bearer$/i.test(scheme)) return value;
  // RFC 7617: the password is all after the first colon.
  if (scheme !== "") return /:(.*)/s.exec(Buffer.from(value, "base64").toString("utf8"))?.[1] ?? "";
  return query.get("token");
}
