import { and, eq, gt, sql } from "drizzle-orm";
import type { App } from "#app.ts";
import { scheduleDeletion } from "#platform/http/object-gc.ts";
import { deleteInSlices } from "#platform/scheduled-tasks/delete-in-slices.ts";
import type { Db } from "#storage/db/open.ts";
import { type AssetRow, replacedMedia } from "#storage/db/schema.ts";

/** Players that have read an old playlist request its segments for as long. */
export const KEPT_MS = 3_600_000;

/**
 * The asset, read in the same transaction, gets other media: the old ones are served for another hour, and then deleted.
 * Precedes `passOnMedia`, which may keep what clips play, but not schedule it earlier.
 */
export async function replaceMedia(
  tx: Db,
  app: App,
  asset: Pick<AssetRow, "id" | "mediaPrefix" | "sharedPrefix" | "sharedMedia">,
): Promise<void> {
  const { id, mediaPrefix, sharedPrefix, sharedMedia } = asset;
  if (mediaPrefix === null) return;
  const expiresAt = app.clock.now() + KEPT_MS;
  const values = { mediaPrefix, assetId: id, expiresAt, sharedPrefix, sharedMedia };
  await tx.insert(replacedMedia).values(values).onConflictDoNothing();
  await scheduleDeletion(tx, app, [mediaPrefix], KEPT_MS);
}

/** Where the media are that an asset had until recently. */
export const replacedMediaOf = (
  { db, clock }: App,
  assetId: number,
): Promise<(typeof replacedMedia.$inferSelect)[]> => {
  const isValid = and(eq(replacedMedia.assetId, assetId), gt(replacedMedia.expiresAt, clock.now()));
  return db.select().from(replacedMedia).where(isValid).all();
};

/** Whether the objects under a prefix are still served, and deleted by the garbage collection alone. */
export const isReplaced = async ({ db }: App, prefix: string): Promise<boolean> =>
  (await db.select().from(replacedMedia).where(eq(replacedMedia.mediaPrefix, prefix)).get()) !== undefined;

export const pruneReplacedMedia = (app: App): Promise<number> =>
  deleteInSlices(app, { table: "replaced_media", key: "media_prefix", where: sql`expires_at <= ${app.clock.now()}` });
