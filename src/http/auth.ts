import { eq, sql } from "drizzle-orm";
import type { Db } from "../../storage/db/open.ts";
import { rememberUntilCommit } from "../../storage/db/remember.ts";
import { apiKeys, tenants } from "../../storage/db/schema.ts";
import type { App } from "../app.ts";
import { HttpError } from "../lib/errors.ts";
import { sameSecret, sha256 } from "../lib/tokens.ts";
import { batchOfToken } from "./batch-token.ts";
import type { Caller } from "./caller.ts";
import type { Route } from "./route.ts";

export type Authenticator = {
  /** Reads headers alone: a stranger's body is never looked at. Throws 401 or 403. */
  authenticate(route: Route, headers: Headers): Promise<Caller>;
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
  const keyByHash = rememberUntilCommit(app.commits, (hash: string) => statement.get({ hash }));
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

  async function identify(route: Route, headers: Headers): Promise<Caller> {
    if (route.credential === "none" || route.credential === "signed") return { kind: "anyone" };
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
    async authenticate(route, headers) {
      const caller = await identify(route, headers);
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
