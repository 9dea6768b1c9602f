import { eq } from "drizzle-orm";
import type { App } from "#app.ts";
import type { Db } from "#storage/db/open.ts";
import { type AssetRow, assets } from "#storage/db/schema.ts";
import { type MediaProfile, profileOfJob, publishedProfile } from "../encoding-profile.ts";
import { lastJob } from "./repair.ts";

/** Instant clips of clips; each is a query. */
const MAX_PARENTS = 8;

/**
 * The profile with which the media of an asset were encoded, for a job that encodes more of them: its last job's, or
 * for a clip without one its parent's, as it was then. Without any job, the asset's profile as it is now.
 */
export async function profileOfMedia(tx: Db, app: App, asset: AssetRow): Promise<MediaProfile> {
  let of: AssetRow | undefined = asset;
  for (let count = 0; of && count < MAX_PARENTS; count++) {
    const job = await lastJob(tx, of.id);
    if (job) return publishedProfile(job);
    const parentId: number | null = of.parentAssetId;
    of = parentId === null ? undefined : await tx.select().from(assets).where(eq(assets.id, parentId)).get();
  }
  return profileOfJob(tx, app, asset);
}
