import { desc, eq } from "drizzle-orm";
import type { App } from "#app.ts";
import { setPoster } from "#features/assets/poster.ts";
import { heldSourceBytes, setStoredBytes, trackBytesOf } from "#features/assets/stored-bytes.ts";
import type { Db } from "#storage/db/open.ts";
import { type AssetRow, assets, type JobRow, transcodingJobs } from "#storage/db/schema.ts";
import { applyTransition } from "./apply.ts";
import { queueAgain, queueJob } from "./queue.ts";
import { rejoinOf } from "./rejoin.ts";

type MissingMedia = { lost: ReadonlySet<string>; mediaBytes: number };
export type Outcome = { done: "remade" | "rejoined" | "errored" | "forgotten" } | { left: string };

const MEDIA = ["manifestPath", "dashManifestPath", "thumbnailPath", "storyboardPath", "mp4Path"] as const;

/**
 * Handles an asset whose objects are missing from storage. With its source it is re-encoded, as by a retry; a joined one is
 * joined again from its parts. Without them, it keeps what is left; without its HLS manifest it becomes errored with `media_lost`, and the event is emitted.
 * References to missing objects are removed. `mediaBytes` is the size of the remaining media. Throws 403
 * `quota_exceeded` when a job must be queued and may not.
 */
export const repairLoss = (app: App, assetId: number, { lost, mediaBytes }: MissingMedia): Promise<Outcome> =>
  app.write(async (tx): Promise<Outcome> => {
    const found = await tx.select().from(assets).where(eq(assets.id, assetId)).get();
    if (found?.provider !== "managed") return { done: "forgotten" };
    const isPosterLost = found.posterPath !== null && lost.has(found.posterPath);
    const asset = isPosterLost ? await setPoster(tx, app, found, null) : found;
    if (isPosterLost && lost.size === 1) return { done: "forgotten" };
    const job = await lastJob(tx, assetId);
    if (job?.status === "queued" || job?.status === "running") return { left: `job ${job.id} is ${job.status}` };
    const isSourceLost = lost.has(asset.sourceKey);
    const gone = MEDIA.filter((column) => lost.has(asset[column] ?? ""));
    const hasSource = asset.sourceKey !== "" && asset.inputStatus === "uploaded" && !isSourceLost;
    const plays = !gone.some((column) => column.endsWith("anifestPath"));
    if (hasSource && gone.length > 0) {
      await transcodeAgain(tx, app, asset, { job, plays });
      return { done: "remade" };
    }
    const rejoin = gone.length > 0 ? await rejoinOf(tx, asset, { job, lost }) : null;
    if (rejoin?.can === "later") return { left: rejoin.reason };
    if (rejoin?.can === "now") {
      await transcodeAgain(tx, app, asset, { job, plays });
      return { done: "rejoined" };
    }
    const reason = rejoin ? `${rejoin.reason}; join others, or restore its files from a backup` : NO_SOURCE;
    return { done: await continueWithout(tx, app, asset, { isSourceLost, gone, mediaBytes, reason }) };
  });

/**
 * Joins an asset again when its media, as in `seen`, are damaged. They remain playable until then. Throws 403
 * `quota_exceeded` when the job may not be queued.
 */
export const rejoinDamaged = (app: App, seen: Pick<AssetRow, "id" | "mediaPrefix">): Promise<Outcome> =>
  app.write(async (tx): Promise<Outcome> => {
    const asset = await tx.select().from(assets).where(eq(assets.id, seen.id)).get();
    if (asset?.mediaPrefix !== seen.mediaPrefix) return { left: "its media were replaced meanwhile" };
    const job = await lastJob(tx, asset.id);
    if (job?.status === "queued" || job?.status === "running") return { left: `job ${job.id} is ${job.status}` };
    const rejoin = await rejoinOf(tx, asset, { job, lost: new Set() });
    if (rejoin?.can !== "now") return { left: rejoin?.reason ?? "its parts are not known any more" };
    await transcodeAgain(tx, app, asset, { job, plays: true });
    return { done: "rejoined" };
  });

export const lastJob = (tx: Db, assetId: number): Promise<JobRow | undefined> =>
  tx
    .select()
    .from(transcodingJobs)
    .where(eq(transcodingJobs.assetId, assetId))
    .orderBy(desc(transcodingJobs.id))
    .limit(1)
    .get();

/** Media that play without the missing objects stay playable. */
async function transcodeAgain(
  tx: Db,
  app: App,
  asset: AssetRow,
  { job, plays }: { job: JobRow | undefined; plays: boolean },
) {
  if (!plays) await applyTransition(tx, app, "unpublish", { assetId: asset.id });
  return job ? queueAgain(tx, app, job, "rebuild") : queueJob(tx, app, asset, { silently: plays });
}

type RemainingMedia = {
  isSourceLost: boolean;
  gone: readonly (typeof MEDIA)[number][];
  mediaBytes: number;
  /** Why the media cannot be created again, a clause with what to do. */
  reason: string;
};

const NO_SOURCE = "there is no source to encode them again; upload it again";

async function continueWithout(
  tx: Db,
  app: App,
  asset: AssetRow,
  { isSourceLost, gone, mediaBytes, reason }: RemainingMedia,
) {
  const plays = asset.playbackStatus === "ready" && !gone.includes("manifestPath");
  const isErrored = asset.playbackStatus === "errored";
  const before = heldSourceBytes(asset);
  const sourceBytes = isSourceLost ? 0 : before;
  const texts = await trackBytesOf(tx, asset.id);
  const storageBytes = plays
    ? Math.max(0, asset.storageBytes - (before - sourceBytes))
    : sourceBytes + asset.posterBytes + asset.sharedBytes + mediaBytes + texts;
  await setStoredBytes(tx, app, asset, storageBytes);
  const columns = {
    ...Object.fromEntries(gone.map((column) => [column, null])),
    ...(isSourceLost && { sourceKey: "", sourceBytes: 0 }),
  };
  const subject = { assetId: asset.id };
  if (isSourceLost && !plays) await applyTransition(tx, app, "loseSource", subject);
  await tx
    .update(assets)
    .set({ ...columns, updatedAt: app.clock.now() })
    .where(eq(assets.id, asset.id));
  if (plays || isErrored) return "forgotten" as const;
  const error = {
    errorCode: "media_lost",
    errorMessage: `Its files were lost from storage and ${reason}.`,
  };
  await applyTransition(tx, app, "lose", subject, { asset: { progress: 0, stage: null, ...error } });
  return "errored" as const;
}
