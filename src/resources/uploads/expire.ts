import { and, asc, eq, lte } from "drizzle-orm";
import { uploads } from "../../../storage/db/schema.ts";
import type { App } from "../../app.ts";
import { collectGarbage } from "../../http/object-gc.ts";
import { abortAssetUpload } from "../assets/abort-upload.ts";
import { countKept } from "../jobs/registered-source.ts";
import { dropParts } from "./multipart.ts";

const BATCH = 100;

/** Sessions whose time is over: they are told of, and what was put is removed. Answers how many there were. */
export async function expireUploads(app: App): Promise<number> {
  const overdue = and(eq(uploads.status, "pending"), lte(uploads.expiresAt, app.clock.now()));
  // Looked at outside the write queue first: nearly always there is nothing to do.
  if (!(await app.db.select({ id: uploads.id }).from(uploads).where(overdue).limit(1).get())) return 0;
  const expired = await app.write(async (tx) => {
    const rows = await tx.select().from(uploads).where(overdue).orderBy(asc(uploads.expiresAt)).limit(BATCH).all();
    for (const row of rows) await abortAssetUpload(tx, app, row, "expired");
    return rows;
  });
  await dropParts(app, expired);
  await countKept(app, expired);
  await collectGarbage(app);
  return expired.length;
}
