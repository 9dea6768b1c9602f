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

/**
 * 403 `quota_exceeded` when so many bytes more are beyond the plan. Asked inside the transaction that adds them. `promised`
 * are bytes that are on their way, and no asset's yet.
 */
export function requireStorage(app: App, tenant: TenantRow, adding: number, promised = 0): void {
  const { planName, storageBytes } = tenant;
  const quota = storageQuotaOf(app, tenant);
  if (quota === null || storageBytes + promised + adding <= quota) return;
  const waiting = promised > 0 ? `, ${promised} are in open ingest batches` : "";
  throw exceeded(
    `The ${planName} plan holds ${quota} bytes; ${storageBytes} are used${waiting} and ${adding} were to be added. Delete assets${promised > 0 ? ", cancel batches" : ""}, or change to a larger plan.`,
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
