import { and, eq, gt, lte } from "drizzle-orm";
import type { Db } from "../../../storage/db/open.ts";
import { type AssetRow, replacedMedia } from "../../../storage/db/schema.ts";
import type { App } from "../../app.ts";
import { scheduleDeletion } from "../../http/object-gc.ts";

/** Players that have read an old playlist request its segments for as long. */
const KEPT_MS = 3_600_000;

/**
 * The asset, read in the same transaction, gets other media: the old ones are served for another hour, and then deleted.
 * Precedes `passOnMedia`, which may keep what clips play, but not schedule it earlier.
 */
export async function replaceMedia(tx: Db, app: App, { id, mediaPrefix }: AssetRow): Promise<void> {
  if (mediaPrefix === null) return;
  const expiresAt = app.clock.now() + KEPT_MS;
  await tx.insert(replacedMedia).values({ mediaPrefix, assetId: id, expiresAt }).onConflictDoNothing();
  await scheduleDeletion(tx, app, [mediaPrefix], KEPT_MS);
}

/** The prefixes of media that an asset had until recently. */
export const replacedPrefixes = async ({ db, clock }: App, assetId: number): Promise<string[]> => {
  const isValid = and(eq(replacedMedia.assetId, assetId), gt(replacedMedia.expiresAt, clock.now()));
  const rows = await db.select({ prefix: replacedMedia.mediaPrefix }).from(replacedMedia).where(isValid).all();
  return rows.map(({ prefix }) => prefix);
};

/** Whether the objects under a prefix are still served, and deleted by the garbage collection alone. */
export const isReplaced = async ({ db }: App, prefix: string): Promise<boolean> =>
  (await db.select().from(replacedMedia).where(eq(replacedMedia.mediaPrefix, prefix)).get()) !== undefined;

export const pruneReplacedMedia = (app: App): Promise<unknown> =>
  app.write((tx) => tx.delete(replacedMedia).where(lte(replacedMedia.expiresAt, app.clock.now())));
