import { eq } from "drizzle-orm";
import { type BatchRow, ingestBatches, tenants } from "../../storage/db/schema.ts";
import type { App } from "../app.ts";
import { hmac, sameSecret } from "../lib/tokens.ts";
import type { Caller } from "./caller.ts";

/** So long a client whose answer to a commit or a cancel was lost may ask again. */
const AFTER_END_MS = 24 * 3_600_000;

/** The lease of an ingest batch: 256 bits, derived, so that none is stored and a repeated create gets the same. */
export const batchToken = (app: App, { id, folder }: Pick<BatchRow, "id" | "folder">) =>
  `bat_${id}_${hmac(app.secrets.signing_secret, `ingest batch\n${id}\n${folder}`)}`;

/** Whose token this is; null for one that was never given or whose lease is over. */
export async function batchOfToken(app: App, token: string): Promise<Caller | null> {
  const id = Number(/^bat_(\d{1,15})_/.exec(token)?.[1]);
  if (!id) return null;
  const found = await app.db
    .select({ batch: ingestBatches, tenantStatus: tenants.status })
    .from(ingestBatches)
    .innerJoin(tenants, eq(tenants.id, ingestBatches.tenantId))
    .where(eq(ingestBatches.id, id))
    .get();
  if (!found || !sameSecret(token, batchToken(app, found.batch)) || found.tenantStatus !== "active") return null;
  const { status, expiresAt, endedAt, tenantId } = found.batch;
  const isOver = status === "committed" || status === "canceled";
  const until = isOver ? (endedAt ?? 0) + AFTER_END_MS : status === "open" ? expiresAt : 0;
  return until > app.clock.now() ? { kind: "batch", batchId: id, tenantId } : null;
}
