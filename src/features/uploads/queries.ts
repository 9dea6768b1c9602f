import { and, asc, eq } from "drizzle-orm";
import { type Caller, ownedBy } from "#platform/http/caller.ts";
import type { Db } from "#storage/db/open.ts";
import { type AssetRow, assets, type JobRow, transcodingJobs, type UploadRow, uploads } from "#storage/db/schema.ts";

export const getUpload = (
  db: Db,
  caller: Caller,
  id: number,
): Promise<{ upload: UploadRow; asset: AssetRow } | undefined> =>
  db
    .select({ upload: uploads, asset: assets })
    .from(uploads)
    .innerJoin(assets, eq(assets.id, uploads.assetId))
    .where(and(eq(uploads.id, id), ownedBy(caller, uploads.tenantId)))
    .get();

/** The session that may PUT to `objectKey`. The signed URL is the credential, so no caller is checked. */
export const uploadOfKey = (db: Db, objectKey: string): Promise<UploadRow | undefined> =>
  db.select().from(uploads).where(eq(uploads.objectKey, objectKey)).get();

/** The job that completing the upload queued: the first of its asset. */
export const firstJob = (db: Db, assetId: number): Promise<JobRow | undefined> =>
  db
    .select()
    .from(transcodingJobs)
    .where(eq(transcodingJobs.assetId, assetId))
    .orderBy(asc(transcodingJobs.id))
    .limit(1)
    .get();
