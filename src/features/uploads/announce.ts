import { and, eq } from "drizzle-orm";
import type { App } from "#app.ts";
import type { Db } from "#storage/db/open.ts";
import { uploads } from "#storage/db/schema.ts";
import { requireTenant } from "../tenants/queries.ts";
import { remainingStorage, requireStorage } from "../tenants/quota.ts";

/** Bytes to announce in advance when the source does not declare its size. */
export const STEP_BYTES = 64 * 1024 * 1024;

/** An upload that still waits for its bytes. */
export const pendingOf = (db: Db, id: number) =>
  db
    .select()
    .from(uploads)
    .where(and(eq(uploads.id, id), eq(uploads.status, "pending")))
    .get();

/** Announces exactly these bytes, which the plan allows. */
export const setExpected = (tx: Db, id: number, bytesExpected: number) =>
  tx.update(uploads).set({ bytesExpected }).where(eq(uploads.id, id));

/**
 * Announces `bytes` for an upload whose size is not known, and up to `ahead` more where the plan allows. Returns the announced
 * number; null for an upload that does not wait any more. Throws 403 `quota_exceeded` when the plan does not allow `bytes`.
 */
export const announceBytes = (app: App, id: number, bytes: number, ahead: number): Promise<number | null> =>
  app.write(async (tx) => {
    const upload = await pendingOf(tx, id);
    if (!upload) return null;
    const tenant = await requireTenant(tx, { kind: "admin" }, upload.tenantId);
    requireStorage(app, tenant, bytes, { replacing: upload.bytesExpected });
    const left = remainingStorage(app, tenant);
    const most = left === null ? Number.MAX_SAFE_INTEGER : left + upload.bytesExpected;
    const announced = Math.max(bytes, Math.min(bytes + ahead, most));
    await setExpected(tx, id, announced);
    return announced;
  });
