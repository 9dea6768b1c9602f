import { and, asc, eq, lte } from "drizzle-orm";
import type { App } from "#app.ts";
import { uploads } from "#storage/db/schema.ts";
import { collectGarbage } from "../assets/collect-garbage.ts";
import { abandonUpload } from "../transcoding/lifecycle/uploads.ts";
import { sharedSourceBytes } from "../transcoding/registered-source.ts";
import { dropParts } from "./multipart.ts";

const BATCH = 100;

/** Expires sessions: emits their events and deletes their bytes. Returns their number. */
export async function expireUploads(app: App): Promise<number> {
  const overdue = and(eq(uploads.status, "pending"), lte(uploads.expiresAt, app.clock.now()));
  // Checked outside the write queue first: there is almost never anything to do.
  if (!(await app.db.select({ id: uploads.id }).from(uploads).where(overdue).limit(1).get())) return 0;
  const expired = await app.write(async (tx) => {
    const rows = await tx.select().from(uploads).where(overdue).orderBy(asc(uploads.expiresAt)).limit(BATCH).all();
    for (const row of rows) await abandonUpload(tx, app, row, "expired");
    return rows;
  });
  await dropParts(app, expired);
  await sharedSourceBytes(app, expired);
  await collectGarbage(app);
  return expired.length;
}
