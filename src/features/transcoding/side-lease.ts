import type { App } from "#app.ts";
import { hmac, sameSecret, sha256 } from "#lib/base";
import { newDeliveredPrefix } from "#model/object-keys.ts";
import { scheduleDeletion } from "#platform/http/object-gc.ts";
import type { Db } from "#storage/db/open.ts";
import { leaseMs, stale } from "./lease.ts";

/**
 * Leases of work that workers do for an asset next to its jobs, which change what the asset plays: added audio tracks, and captions.
 * Its rows have these columns of their own.
 */
export type SideLease = {
  id: number;
  tenantId: number;
  attempts: number;
  leaseHash: string | null;
  leaseExpiresAt: number | null;
};
export type SideKind = "audio track" | "caption";

/** What an attempt that was lost has written is deleted then; its worker's URLs have ended. */
const ABANDONED_MS = 26 * 3_600_000;
/** Between attempts, for each that has failed. */
const BACKOFF_MS = 5000;

/** The fault of work whose attempts have all ended with their worker. */
export const WORKER_LOST = { code: "worker_lost", message: "The worker was lost in each attempt." };
export const NO_LEASE = { claimKey: null, leaseHash: null, leaseExpiresAt: null };

const tokenOf = (app: App, kind: SideKind, id: number, attempt: number, key: string) =>
  hmac(app.secrets.signing_secret, `${kind} lease\n${id}\n${attempt}\n${key}`);

/** The token of what this key has leased before. Throws 409 `stale_lease` when that has ended. */
export function heldToken(app: App, kind: SideKind, row: SideLease, key: string): string {
  if ((row.leaseExpiresAt ?? 0) <= app.clock.now())
    return stale("The lease of this Idempotency-Key has ended; claim with a new key.");
  return tokenOf(app, kind, row.id, row.attempts, key);
}

/** The token and the columns of another attempt. */
export async function startAttempt(tx: Db, app: App, kind: SideKind, row: SideLease, key: string) {
  const now = app.clock.now();
  const prefix = newDeliveredPrefix(row.tenantId);
  await scheduleDeletion(tx, app, [prefix], ABANDONED_MS);
  const attempts = row.attempts + 1;
  const token = tokenOf(app, kind, row.id, attempts, key);
  const lease = { claimKey: key, leaseHash: sha256(token), leaseExpiresAt: now + leaseMs(app) };
  return { token, columns: { attempts, prefix, ...lease, updatedAt: now } };
}

export const hasEnded = ({ leaseExpiresAt }: SideLease, now: number): boolean =>
  leaseExpiresAt === null || leaseExpiresAt <= now;

/** The row of a token whose lease is valid. Throws 409 `stale_lease`, also when it was deleted. */
export function requireLease<Row extends SideLease>(app: App, row: Row | undefined, token: string): Row {
  if (!row?.leaseHash || !sameSecret(row.leaseHash, sha256(token))) return stale();
  return hasEnded(row, app.clock.now()) ? stale() : row;
}

/** When there is another attempt; `isCounted` is false where the last one is not its fault. */
export function nextAttempt({ attempts }: SideLease, isCounted: boolean, now: number) {
  return {
    attempts: isCounted ? attempts : Math.max(0, attempts - 1),
    availableAt: isCounted ? now + BACKOFF_MS * attempts : now,
  };
}
