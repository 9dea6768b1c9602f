import type { Db } from "../../../storage/db/open.ts";
import type { TenantRow } from "../../../storage/db/schema.ts";
import type { App } from "../../app.ts";
import { DEFAULT_PRICES } from "../../config/prices.ts";
import { HttpError } from "../../lib/errors.ts";
import { monthOf } from "../../lib/months.ts";
import { usageOf } from "./usage.ts";

export const pricesOf = ({ config }: App) => config.prices ?? DEFAULT_PRICES;
export const MINUTE_MS = 60_000;

export const storageQuotaOf = (app: App, { planName }: TenantRow): number | null =>
  pricesOf(app).plans[planName].quotas.storage_bytes;

/** Bytes that may still be announced or stored, in addition to what is stored and announced; null for any number. */
export function storageLeft(app: App, tenant: TenantRow): number | null {
  const quota = storageQuotaOf(app, tenant);
  return quota === null ? null : Math.max(0, quota - tenant.storageBytes - tenant.announcedBytes);
}

/**
 * 403 `quota_exceeded` when `adding` bytes are beyond the plan, with what is stored and what open uploads and ingest
 * batches have announced. Called inside the transaction that announces or adds them. `replacing` are announced bytes that
 * the same transaction takes back.
 */
export function requireStorage(app: App, tenant: TenantRow, adding: number, { replacing = 0 } = {}): void {
  require(app, tenant, { adding, announced: Math.max(0, tenant.announcedBytes - replacing) });
}

/** The same for bytes that were announced and are stored now: what others have announced since is not theirs to wait for. */
export function requireStored(app: App, tenant: TenantRow, adding: number): void {
  require(app, tenant, { adding, announced: 0 });
}

function require(app: App, tenant: TenantRow, { adding, announced }: { adding: number; announced: number }): void {
  const { planName, storageBytes } = tenant;
  const quota = storageQuotaOf(app, tenant);
  if (quota === null || storageBytes + announced + adding <= quota) return;
  const open = announced > 0 ? `, ${announced} are announced by open uploads and ingest batches` : "";
  const abort = announced > 0 ? ", abort uploads, cancel batches" : "";
  throw exceeded(
    `The ${planName} plan holds ${quota} bytes; ${storageBytes} are used${open} and ${adding} were to be added. Delete assets${abort}, or change to a larger plan.`,
  );
}

/** 403 `quota_exceeded` when the month's minutes are used up: how long a source is, nobody knows before it is read. */
export async function requireMinutes(tx: Db, app: App, tenant: TenantRow): Promise<void> {
  const { transcoding_minutes: quota } = pricesOf(app).plans[tenant.planName].quotas;
  if (quota === null) return;
  const now = app.clock.now();
  const used = await usageOf(tx, tenant, monthOf(now), now);
  if (used.transcodingMs < quota * MINUTE_MS) return;
  throw exceeded(
    `The ${tenant.planName} plan transcodes ${quota} minutes a month; ${Math.ceil(used.transcodingMs / MINUTE_MS)} are used. Wait for the next month (UTC), or change to a larger plan.`,
  );
}

const exceeded = (message: string) => new HttpError(403, "quota_exceeded", message);
