import { and, asc, eq, lte } from "drizzle-orm";
import { assets, uploads } from "../../../storage/db/schema.ts";
import type { App } from "../../app.ts";
import { emit } from "../../events/emit.ts";
import { dropObjects, sweepUnwanted } from "../../http/unwanted.ts";
import { isSourceElsewhere } from "../assets/change.ts";

const BATCH = 100;

/** Sessions whose time is over: they are told of, and what was put is removed. Answers how many there were. */
export async function expireUploads(app: App): Promise<number> {
  const now = app.clock.now();
  const overdue = and(eq(uploads.status, "pending"), lte(uploads.expiresAt, now));
  // Looked at outside the write queue first: nearly always there is nothing to do.
  if (!(await app.db.select({ id: uploads.id }).from(uploads).where(overdue).limit(1).get())) return 0;
  const expired = await app.write(async (tx) => {
    const rows = await tx.select().from(uploads).where(overdue).orderBy(asc(uploads.expiresAt)).limit(BATCH).all();
    for (const { id, tenantId, assetId, filename, objectKey } of rows) {
      await tx.update(uploads).set({ status: "expired", updatedAt: now }).where(eq(uploads.id, id));
      const change = { inputStatus: "failed" as const, updatedAt: now };
      const asset = await tx.update(assets).set(change).where(eq(assets.id, assetId)).returning().get();
      const data = {
        upload_id: id,
        asset_id: String(assetId),
        external_id: asset.externalId,
        filename,
        bytes_received: null,
      };
      await emit(tx, { tenantId, type: "video.upload.failed", data, now });
      if (!(await isSourceElsewhere(tx, asset))) await dropObjects(tx, app, [objectKey]);
    }
    return rows.length;
  });
  await sweepUnwanted(app);
  return expired;
}
