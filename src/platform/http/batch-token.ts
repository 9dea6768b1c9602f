import { eq } from "drizzle-orm";
import type { App } from "#app.ts";
import { hmac, sameSecret } from "#lib/base";
import { type BatchRow, tenants, uploadBatches } from "#storage/db/schema.ts";
import type { Caller } from "./caller.ts";

/** Grace period in which a client that lost the response to a commit or a cancel may retry it. */
const AFTER_END_MS = 24 * 3_600_000;

/**
 * The lease token of a batch upload: 256 bits, derived from a secret, so that it is not stored and a repeated create
 * returns the same one.
 */
export const batchToken = (app: App, { id, folder }: Pick<BatchRow, "id" | "folder">) =>
  `bat_${id}_${hmac(app.secrets.signing_secret, `ingest batch\n${id}\n${folder}`)}`;

/** The batch of a token; null when the token is invalid or its lease has expired. */
export async function batchOfToken(app: App, token: string): Promise<Caller | null> {
  const id = Number(/^bat_(\d{1,15})_/.exec(token)?.[1]);
  if (!id) return null;
  const batch = await app.db
    .select({ batch: uploadBatches, tenantStatus: tenants.status })
    .from(uploadBatches)
    .innerJoin(tenants, eq(tenants.id, uploadBatches.tenantId))
    .where(eq(uploadBatches.id, id))
    .get();
  if (!batch || !sameSecret(token, batchToken(app, batch.batch)) || batch.tenantStatus !== "active") return null;
  const { status, expiresAt, endedAt, tenantId } = batch.batch;
  const isOver = status === "committed" || status === "canceled";
  const until = isOver ? (endedAt ?? 0) + AFTER_END_MS : status === "open" ? expiresAt : 0;
  return until > app.clock.now() ? { kind: "batch", batchId: id, tenantId } : null;
}
