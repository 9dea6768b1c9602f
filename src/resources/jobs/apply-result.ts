import { eq, sql } from "drizzle-orm";
import type * as v from "valibot";
import type { Db } from "../../../storage/db/open.ts";
import { type AssetRow, assets, type JobRow, subtitles } from "../../../storage/db/schema.ts";
import type { App } from "../../app.ts";
import { scheduleDeletion } from "../../http/object-gc.ts";
import { imagesPrefix } from "../assets/change.ts";
import { addUsage } from "../tenants/usage.ts";
import type { Completion } from "./schema.ts";

type Media = NonNullable<v.InferOutput<typeof Completion>["media"]>;

/** What an attempt has put into storage, checked. */
export type VerifiedResult = {
  paths: Pick<
    AssetRow,
    "mediaPrefix" | "manifestPath" | "dashManifestPath" | "thumbnailPath" | "storyboardPath" | "mp4Path"
  >;
  bytes: number;
  media: Media & { duration_seconds: number; renditions: AssetRow["renditions"] };
};

/**
 * The asset plays what was made. `outdated` is a folder that nothing names any more: of those that jobs of this asset have
 * made alone, for a folder that a client named may be another's.
 */
export async function applyResult(
  tx: Db,
  app: App,
  job: JobRow,
  { paths, bytes, media }: VerifiedResult,
): Promise<{ asset: AssetRow; outdated: string | null }> {
  const now = app.clock.now();
  const before = await tx.select().from(assets).where(eq(assets.id, job.assetId)).get();
  const texts = await tx
    .select({ bytes: sql<number>`coalesce(sum(${subtitles.bytes}), 0)` })
    .from(subtitles)
    .where(eq(subtitles.assetId, job.assetId))
    .get();
  const storageBytes = (before?.sourceBytes ?? 0) + bytes + (texts?.bytes ?? 0);
  const asset = await tx
    .update(assets)
    .set({
      ...paths,
      // Its worker has read it, whatever was said when it was registered.
      inputStatus: "uploaded",
      playbackStatus: "ready",
      storageBytes,
      durationSeconds: media.duration_seconds,
      ...(media.width != null && { width: Math.round(media.width) }),
      ...(media.height != null && { height: Math.round(media.height) }),
      ...(media.frame_rate != null && { frameRate: media.frame_rate }),
      renditions: media.renditions,
      errorCode: null,
      errorMessage: null,
      readyAt: now,
      updatedAt: now,
    })
    .where(eq(assets.id, job.assetId))
    .returning()
    .get();
  await addUsage(tx, job.tenantId, { storageBytes: storageBytes - (before?.storageBytes ?? 0) }, now);
  if (before && before.readyAt !== null) await scheduleDeletion(tx, app, [imagesPrefix(before)]);
  const isOurs = before?.mediaPrefix?.startsWith(`tenants/${job.tenantId}/assets/${job.assetId}/`);
  return { asset, outdated: isOurs && before && before.mediaPrefix !== paths.mediaPrefix ? before.mediaPrefix : null };
}
