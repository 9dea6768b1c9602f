import { and, eq, lt, sql } from "drizzle-orm";
import type { App } from "#app.ts";
import { HttpError, hmac, sha256 } from "#lib/base";
import type { Db } from "#storage/db/open.ts";
import { idempotencyRecords } from "#storage/db/schema.ts";
import { type Context, Reply, type Route } from "./route.ts";

const KEPT_MS = 24 * 3_600_000;

/** What a repeated request must match: caller, key, route and body. */
export type Repeat = { caller: string; key: string; requestHash: string };

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
  return { caller: callerName, key, requestHash: sha256(`${route.method} ${url.pathname}\n${text}`) };
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
  const values = { ...repeat, status, body: JSON.stringify(stored), createdAt: app.clock.now() };
  await tx
    .insert(idempotencyRecords)
    .values(values)
    .onConflictDoUpdate({
      target: [idempotencyRecords.caller, idempotencyRecords.key],
      set: {
        requestHash: sql`excluded.request_hash`,
        status: sql`excluded.status`,
        body: sql`excluded.body`,
        createdAt: sql`excluded.created_at`,
      },
    });
}

/** Deletes responses older than one day. */
export const pruneResponses = (tx: Db, now: number) =>
  tx.delete(idempotencyRecords).where(lt(idempotencyRecords.createdAt, now - KEPT_MS));
