import { desc, eq, sql } from "drizzle-orm";
import type { Db } from "../../../storage/db/open.ts";
import { type AssetRow, assets, type JobRow, subtitles, transcodingJobs } from "../../../storage/db/schema.ts";
import type { App } from "../../app.ts";
import { addUsage } from "../tenants/usage.ts";
import { enqueue, queueJob } from "./enqueue.ts";
import { emitAsset } from "./events.ts";
import { requeue } from "./job-commands.ts";

type Lost = { lost: ReadonlySet<string>; mediaBytes: number };
export type Outcome = { done: "remade" | "errored" | "forgotten" } | { left: string };

const MEDIA = ["manifestPath", "dashManifestPath", "thumbnailPath", "storyboardPath", "mp4Path"] as const;

/**
 * Objects that an asset names are gone from storage. With its source it is made anew, as by a retry. Without it, it goes on
 * with what is left; without its HLS manifest it is errored, as `media_lost`, and told of. What is lost is named no more.
 * `mediaBytes` is what is left of its media. 403 `quota_exceeded` where a job has to be queued and may not.
 */
export async function repairLoss(app: App, assetId: number, { lost, mediaBytes }: Lost): Promise<Outcome> {
  const outcome = await app.write(async (tx): Promise<Outcome> => {
    const asset = await tx.select().from(assets).where(eq(assets.id, assetId)).get();
    if (asset?.provider !== "managed") return { done: "forgotten" };
    const job = await lastJob(tx, assetId);
    if (job?.status === "queued" || job?.status === "running") return { left: `job ${job.id} is ${job.status}` };
    const isSourceLost = lost.has(asset.sourceKey);
    const gone = MEDIA.filter((column) => lost.has(asset[column] ?? ""));
    const hasSource = asset.sourceKey !== "" && asset.inputStatus === "uploaded" && !isSourceLost;
    if (hasSource && gone.length > 0) {
      await transcodeAgain(tx, app, asset, { job, plays: !gone.some((column) => column.endsWith("anifestPath")) });
      return { done: "remade" };
    }
    return { done: await continueWithout(tx, app, asset, { isSourceLost, gone, mediaBytes }) };
  });
  if ("done" in outcome && outcome.done === "remade") app.signals.emit("job.queued");
  return outcome;
}

const lastJob = (tx: Db, assetId: number): Promise<JobRow | undefined> =>
  tx
    .select()
    .from(transcodingJobs)
    .where(eq(transcodingJobs.assetId, assetId))
    .orderBy(desc(transcodingJobs.id))
    .limit(1)
    .get();

/** What plays without what is lost goes on playing meanwhile. */
async function transcodeAgain(
  tx: Db,
  app: App,
  asset: AssetRow,
  { job, plays }: { job: JobRow | undefined; plays: boolean },
) {
  // The only transition out of `ready`: the media that made the asset playable are gone.
  if (!plays) await tx.update(assets).set({ playbackStatus: "processing" }).where(eq(assets.id, asset.id));
  if (job) return requeue(tx, app, job);
  return plays ? queueJob(tx, app, asset) : enqueue(tx, app, asset);
}

type Left = { isSourceLost: boolean; gone: readonly (typeof MEDIA)[number][]; mediaBytes: number };

async function continueWithout(tx: Db, app: App, asset: AssetRow, { isSourceLost, gone, mediaBytes }: Left) {
  const now = app.clock.now();
  const plays = asset.playbackStatus === "ready" && !gone.includes("manifestPath");
  const isErrored = asset.playbackStatus === "errored";
  const sourceBytes = isSourceLost ? 0 : asset.sourceBytes;
  const texts = await tx
    .select({ bytes: sql<number>`coalesce(sum(${subtitles.bytes}), 0)` })
    .from(subtitles)
    .where(eq(subtitles.assetId, asset.id))
    .get();
  const storageBytes = plays
    ? Math.max(0, asset.storageBytes - (asset.sourceBytes - sourceBytes))
    : sourceBytes + mediaBytes + (texts?.bytes ?? 0);
  const changed = await tx
    .update(assets)
    .set({
      ...Object.fromEntries(gone.map((column) => [column, null])),
      ...(isSourceLost && { sourceKey: "", sourceBytes: 0 }),
      ...(isSourceLost && !plays && { inputStatus: "failed" as const }),
      ...(!plays &&
        !isErrored && {
          playbackStatus: "errored" as const,
          progress: 0,
          stage: null,
          errorCode: "media_lost",
          errorMessage: "Its files were lost from storage and there is no source to make them anew; upload it again.",
        }),
      storageBytes,
      updatedAt: now,
    })
    .where(eq(assets.id, asset.id))
    .returning()
    .get();
  await addUsage(tx, asset.tenantId, { storageBytes: storageBytes - asset.storageBytes }, now);
  if (plays || isErrored) return "forgotten" as const;
  await emitAsset(tx, app, "video.asset.errored", changed);
  return "errored" as const;
}
