import type { App } from "#app.ts";
import { HttpError, monthOf } from "#lib/base";
import { DEFAULT_PRICES } from "#platform/config/prices.ts";
import type { Db } from "#storage/db/open.ts";
import type { TenantRow } from "#storage/db/schema.ts";
import { tenantById } from "./queries.ts";
import { MINUTE_MS, storedBytesOf, usageOf, wholeMinutes } from "./usage.ts";

export const pricesOf = ({ config }: App) => config.prices ?? DEFAULT_PRICES;

export const storageQuotaOf = (app: App, { planName }: TenantRow): number | null =>
  pricesOf(app).plans[planName].quotas.storage_bytes;

/** Bytes that may be announced or stored in addition to the current ones; null for unlimited. */
export function remainingStorage(app: App, tenant: TenantRow): number | null {
  const quota = storageQuotaOf(app, tenant);
  return quota === null ? null : Math.max(0, quota - storedBytesOf(tenant) - tenant.announcedBytes);
}

/**
 * Throws 403 `quota_exceeded` when `adding` bytes exceed the plan, given the bytes stored and those announced by open
 * uploads and batches. Called in the transaction that announces or adds them. `replacing` are announced bytes that the
 * same transaction releases.
 */
export function requireStorage(app: App, tenant: TenantRow, adding: number, { replacing = 0 } = {}): void {
  require(app, tenant, { adding, announced: Math.max(0, tenant.announcedBytes - replacing) });
}

/** The same for announced bytes that are now stored: bytes that others have announced since do not count. */
export function requireStored(app: App, tenant: TenantRow, adding: number): void {
  require(app, tenant, { adding, announced: 0 });
}

/**
 * Runs work that writes rows of a tenant. Throws 403 `quota_exceeded`, so that the transaction is undone, when they need more
 * bytes in the database than before, and these exceed the plan.
 */
export async function withinStorage<T>(tx: Db, app: App, tenantId: number, work: () => Promise<T>): Promise<T> {
  const before = await tenantById(tx, tenantId);
  if (!before || storageQuotaOf(app, before) === null) return work();
  const result = await work();
  const after = await tenantById(tx, tenantId);
  const added = (after?.databaseBytes ?? 0) - before.databaseBytes;
  if (added > 0) requireStorage(app, before, added);
  return result;
}

function require(app: App, tenant: TenantRow, { adding, announced }: { adding: number; announced: number }): void {
  const { planName } = tenant;
  const storageBytes = storedBytesOf(tenant);
  const quota = storageQuotaOf(app, tenant);
  if (quota === null || storageBytes + announced + adding <= quota) return;
  const open = announced > 0 ? `, ${announced} are reserved by open uploads and batch uploads` : "";
  const abort = announced > 0 ? ", abort uploads, cancel batches" : "";
  throw exceeded(
    `The ${planName} plan includes ${quota} bytes; ${storageBytes} are used${open} and ${adding} would be added. Delete assets${abort}, or change to a larger plan.`,
  );
}

/**
 * Throws 403 `quota_exceeded` when the month's minutes are used up; the duration of a source is unknown until it is
 * read.
 */
export async function requireMinutes(tx: Db, app: App, tenant: TenantRow): Promise<void> {
  const { transcoding_minutes: quota } = pricesOf(app).plans[tenant.planName].quotas;
  if (quota === null) return;
  const now = app.clock.now();
  const used = await usageOf(tx, tenant, monthOf(now), now);
  if (used.transcodingMs < quota * MINUTE_MS) return;
  throw exceeded(
    `The ${tenant.planName} plan includes ${quota} transcoding minutes per month; ${wholeMinutes(used.transcodingMs)} are used. Wait for the next month (UTC), or change to a larger plan.`,
  );
}

/** Streams that the tenant may publish at once, and bit/s of each; null for unlimited. */
export function liveQuotasOf(app: App, { planName }: TenantRow): { streams: number | null; bitrate: number | null } {
  const { live_streams: streams, live_bitrate: bitrate } = pricesOf(app).plans[planName].quotas;
  return { streams, bitrate };
}

const exceeded = (message: string) => new HttpError(403, "quota_exceeded", message);
