import { HttpError } from "#lib/base";
import type { Db } from "#storage/db/open.ts";
import { lastJob } from "./lifecycle/repair.ts";

/**
 * Throws 409 `asset_conflict` while a job trims an asset at frames: what is added to the media that it has would not fit those
 * that it gets.
 */
export async function requireNotTrimming(db: Db, assetId: number): Promise<void> {
  const job = await lastJob(db, assetId);
  if (job?.clip?.trim && (job.status === "queued" || job.status === "running"))
    throw new HttpError(
      409,
      "asset_conflict",
      "The asset is being trimmed; add the audio track when that is complete.",
    );
}
