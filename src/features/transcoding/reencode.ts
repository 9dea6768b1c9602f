import { eq } from "drizzle-orm";
import type { App } from "#app.ts";
import { HttpError, notFound } from "#lib/base";
import type { Caller } from "#platform/http/caller.ts";
import { assets, type JobRow } from "#storage/db/schema.ts";
import { getAsset } from "../assets/queries.ts";
import { DEFAULT_PROFILE, requireProfile } from "../encoding-profiles/queries.ts";
import { queueAgain, queueJob } from "./lifecycle/queue.ts";
import { lastJob } from "./lifecycle/repair.ts";

const conflict = (message: string): never => {
  throw new HttpError(409, "asset_conflict", message);
};

/**
 * Encodes an asset again, with its own profile or another one. It plays its old renditions until the new ones are
 * complete. Throws 404; 409 `asset_conflict` for an asset without a source, or whose job has not ended; 422 for a profile
 * that cannot be used; 403 `quota_exceeded`.
 */
export const reencode = (
  app: App,
  caller: Caller,
  id: number,
  { encoding_profile: named }: { encoding_profile?: string | null | undefined },
): Promise<JobRow> =>
  app.write(async (tx) => {
    const asset = (await getAsset(tx, caller, id)) ?? notFound("asset");
    if (asset.provider !== "managed") conflict("The asset is served externally; vodbox has no source of it.");
    if (asset.sourceKey === "" || asset.inputStatus !== "uploaded")
      conflict("The asset has no source; it cannot be encoded again.");
    const job = await lastJob(tx, id);
    if (job?.status === "queued" || job?.status === "running")
      conflict(`Job ${job.id} of the asset is ${job.status}; wait for it, or cancel it.`);
    // Also its own one: without it, the new renditions would lose a watermark, or the limits of a ladder.
    const wanted = named ?? asset.encodingProfile ?? DEFAULT_PROFILE;
    const profile = (await requireProfile(tx, asset.tenantId, wanted)).name;
    await tx.update(assets).set({ encodingProfile: profile }).where(eq(assets.id, id));
    const chosen = { ...asset, encodingProfile: profile };
    return (await (job ? queueAgain(tx, app, job, "reencode", { profileOf: chosen }) : queueJob(tx, app, chosen))).job;
  });
