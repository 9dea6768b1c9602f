import { eq } from "drizzle-orm";
import type { App } from "#app.ts";
import { newDeliveredPrefix } from "#model/object-keys.ts";
import { scheduleDeletion } from "#platform/http/object-gc.ts";
import type { Db } from "#storage/db/open.ts";
import { type AssetRow, assets } from "#storage/db/schema.ts";
import { isHolder, isLeased, type LeaseKind, leaseEnd, leaseHashOf, leaseToken, stale, staleKey } from "./lease.ts";

/**
 * Leases of work that workers do for an asset next to its jobs, which change what the asset plays: added audio tracks, captions,
 * and parts of captions. Its rows have these columns of their own.
 */
export type SideLease = {
  id: number;
  tenantId: number;
  attempts: number;
  leaseHash: string | null;
  leaseExpiresAt: number | null;
};
type Fault = { code: string; message: string };
type Attempt = ReturnType<typeof startAttempt>;
export type SideKind = Extract<LeaseKind, "track" | "captions" | "part">;

/** What an attempt that was lost has written is deleted then; its worker's URLs have ended. */
const ABANDONED_MS = 26 * 3_600_000;
/** Between attempts, for each that has failed. */
const BACKOFF_MS = 5000;

/** The fault of work whose attempts have all ended with their worker. */
const WORKER_LOST = { code: "worker_lost", message: "The worker was lost in each attempt." };
export const NO_LEASE = { claimKey: null, leaseHash: null, leaseExpiresAt: null };

/** The queue of such work. */
type SideQueue<Row> = {
  kind: SideKind;
  /** Nothing is written to storage: the result is in the completion. */
  isWithoutObjects?: boolean;
  /** What a key has leased, also when that lease has expired. */
  leasedBy(db: Db, key: string): Promise<Row | undefined>;
  /** What runs next; undefined: nothing is due. */
  nextOf(db: Db): Promise<Row | undefined>;
  /** Why it cannot run any more; null when it can. */
  faultOf(asset: AssetRow): Fault | null;
  fail(tx: Db, row: Row, fault: Fault): Promise<unknown>;
  /** `prefix`: where the attempt writes, which is deleted unless a row refers to it. */
  start(tx: Db, row: Row, asset: AssetRow, lease: Attempt["columns"] & { prefix: string }): Promise<Row>;
};
export type LeasedSide<Row> = { row: Row; asset: AssetRow; token: string };

/**
 * Leases what is next, or returns what this key has leased already. Null: there is none. Throws 409 `stale_lease` when the
 * lease of the key has ended.
 */
export async function claimSide<Row extends SideLease & { assetId: number }>(
  app: App,
  key: string,
  { kind, isWithoutObjects = false, leasedBy, nextOf, faultOf, fail, start }: SideQueue<Row>,
): Promise<LeasedSide<Row> | null> {
  // Checked outside the write queue first: there is almost never anything to do.
  if (!(await nextOf(app.db)) && !(await leasedBy(app.db, key))) return null;
  return app.write(async (tx) => {
    const held = await leasedBy(tx, key);
    const first = held ?? (await nextOf(tx));
    const asset = first && (await tx.select().from(assets).where(eq(assets.id, first.assetId)).get());
    if (!first || !asset) return null;
    if (held) return { row: held, asset, token: heldToken(app, kind, held, key) };
    const fault = first.attempts >= app.config.max_attempts ? WORKER_LOST : faultOf(asset);
    if (fault) {
      await fail(tx, first, fault);
      return null;
    }
    const { token, columns } = startAttempt(app, kind, first, key);
    const prefix = newDeliveredPrefix(first.tenantId);
    if (!isWithoutObjects) await scheduleDeletion(tx, app, [prefix], ABANDONED_MS);
    return { row: await start(tx, first, asset, { ...columns, prefix }), asset, token };
  });
}

/** The token of what this key has leased before. Throws 409 `stale_lease` when that has ended. */
function heldToken(app: App, kind: SideKind, row: SideLease, key: string): string {
  if (!isLeased(row, app.clock.now())) return staleKey();
  return leaseToken(app, kind, { id: row.id, number: row.attempts, key });
}

/** The token and the columns of another attempt. */
function startAttempt(app: App, kind: SideKind, row: SideLease, key: string) {
  const now = app.clock.now();
  const attempts = row.attempts + 1;
  const token = leaseToken(app, kind, { id: row.id, number: attempts, key });
  const lease = { claimKey: key, leaseHash: leaseHashOf(token), leaseExpiresAt: leaseEnd(app) };
  return { token, columns: { attempts, ...lease, updatedAt: now } };
}

/** The row of a token whose lease is valid. Throws 409 `stale_lease`, also when it was deleted. */
export function requireLease<Row extends SideLease>(app: App, row: Row | undefined, token: string): Row {
  return row && isHolder(row.leaseHash, token) && isLeased(row, app.clock.now()) ? row : stale();
}

/** When there is another attempt; `isCounted` is false where the last one is not its fault. */
export function nextAttempt({ attempts }: SideLease, isCounted: boolean, now: number) {
  return {
    attempts: isCounted ? attempts : Math.max(0, attempts - 1),
    availableAt: isCounted ? now + BACKOFF_MS * attempts : now,
  };
}
