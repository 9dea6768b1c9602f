import { and, eq, sql } from "drizzle-orm";
import type { App } from "#app.ts";
import { HttpError, hmac, sha256 } from "#lib/base";
import { deleteInSlices } from "#platform/scheduled-tasks/delete-in-slices.ts";
import type { Db } from "#storage/db/open.ts";
import { prepared } from "#storage/db/prepared.ts";
import { idempotencyRecords, tenants } from "#storage/db/schema.ts";
import { type Context, Reply, type Route } from "./route.ts";

const KEPT_MS = 24 * 3_600_000;
/** The bodies of all responses that are stored for a tenant: a hundred thousand usual ones. */
const MAX_TENANT_BYTES = 256 * 2 ** 20;
const RETRY_SECONDS = 3600;

/** What a repeated request must match: caller, key, route and body. `tenantId`: whose stored bytes it adds to. */
export type Repeat = { caller: string; key: string; requestHash: string; tenantId: number | null };

type RepeatedContext = Pick<Context, "app" | "caller" | "headers" | "url" | "body">;

/** Null when the route does not support idempotency or the request has no key. Throws 422 for a malformed key. */
export function repeatOf(route: Route, { app, caller, headers, url, body }: RepeatedContext): Repeat | null {
  const key = headers.get("idempotency-key");
  if (!route.idempotent || key === null) return null;
  if (key.length < 1 || key.length > 255)
    throw new HttpError(422, "validation_failed", "Idempotency-Key must have 1 to 255 bytes.");
  const callerName =
    caller.kind === "key"
      ? `tenant:${caller.tenantId}`
      : caller.kind === "batch"
        ? `batch:${caller.batchId}`
        : caller.kind;
  const { secretInputs = [] } = route.idempotent;
  const hidden = (name: string, value: unknown) =>
    secretInputs.includes(name) && typeof value === "string" ? hmac(app.secrets.signing_secret, value) : value;
  const text = JSON.stringify(body ?? null, secretInputs.length > 0 ? hidden : undefined);
  const tenantId = caller.kind === "key" || caller.kind === "batch" ? caller.tenantId : null;
  return { caller: callerName, key, tenantId, requestHash: sha256(`${route.method} ${url.pathname}\n${text}`) };
}

/** The stored response of the first request, or null. Throws 422 when the key was used with another body. */
export async function findReplay(db: Db, app: App, repeat: Repeat): Promise<Reply | null> {
  const row = await db
    .select()
    .from(idempotencyRecords)
    .where(and(eq(idempotencyRecords.caller, repeat.caller), eq(idempotencyRecords.key, repeat.key)))
    .get();
  if (!row || row.createdAt < app.clock.now() - KEPT_MS) return null;
  if (row.requestHash !== repeat.requestHash) {
    throw new HttpError(422, "idempotency_key_reused", "This Idempotency-Key was used for a different request.");
  }
  return new Reply(row.status, JSON.parse(row.body), { "idempotent-replayed": "true" });
}

/** Stores a response without its secrets, in the transaction of the change. */
export async function storeResponse(
  tx: Db,
  app: App,
  repeat: Repeat,
  status: number,
  body: unknown,
  secrets: readonly string[],
): Promise<void> {
  const stored = { ...(body as Record<string, unknown>) };
  for (const field of secrets) delete stored[field];
  const { tenantId: countedFor, ...names } = repeat;
  const values = { ...names, countedFor, status, body: JSON.stringify(stored), createdAt: app.clock.now() };
  await tx
    .insert(idempotencyRecords)
    .values(values)
    .onConflictDoUpdate({
      target: [idempotencyRecords.caller, idempotencyRecords.key],
      set: {
        requestHash: sql`excluded.request_hash`,
        status: sql`excluded.status`,
        body: sql`excluded.body`,
        countedFor: sql`excluded.counted_for`,
        createdAt: sql`excluded.created_at`,
      },
    });
}

const storedBytes = prepared((db) =>
  db
    .select({ bytes: tenants.idempotencyBytes })
    .from(tenants)
    .where(eq(tenants.id, sql.placeholder("tenantId")))
    .prepare(),
);

/**
 * Throws 429 `rate_limited` where the stored responses of the tenant have more bytes than they may, which triggers count.
 * Before the request is handled, because some handlers commit several times.
 */
export async function requireRoom(db: Db, { tenantId }: Repeat): Promise<void> {
  if (tenantId === null || ((await storedBytes(db).get({ tenantId }))?.bytes ?? 0) <= MAX_TENANT_BYTES) return;
  throw new HttpError(
    429,
    "rate_limited",
    "Too many large responses are stored for requests with an Idempotency-Key, each for 24 hours; try again later, or without the header.",
    { headers: { "retry-after": String(RETRY_SECONDS) } },
  );
}

/** Deletes responses older than one day. */
export const pruneResponses = (app: App): Promise<number> =>
  deleteInSlices(app, {
    table: "idempotency_records",
    key: "caller, key",
    where: sql`created_at < ${app.clock.now() - KEPT_MS}`,
  });
