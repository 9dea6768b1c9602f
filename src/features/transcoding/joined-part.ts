import { eq } from "drizzle-orm";
import { isBelow, ownPath } from "#model/object-keys.ts";
import type { Db } from "#storage/db/open.ts";
import { type AssetRow, assets, type JoinedPart } from "#storage/db/schema.ts";

/** Why media cannot be joined: `message` is a sentence for `asset_not_ready`, else a clause. */
export type PartFault = { code: "asset_not_ready" | "join_not_possible"; message: string };

/** Why an asset cannot be a part of a join; null when it can. */
export function partFault(asset: AssetRow): PartFault | null {
  const { id, playbackStatus, encoding, provider, mediaPrefix, manifestPath } = asset;
  const notReady = (is: string): PartFault => ({ code: "asset_not_ready", message: `The asset ${id} is ${is}.` });
  if (playbackStatus !== "ready") return notReady(`${playbackStatus}, not ready`);
  if (encoding !== null) return notReady("not encoded completely");
  if (provider !== "managed") return { code: "join_not_possible", message: `another server delivers asset ${id}` };
  if (mediaPrefix === null || manifestPath === null || !isBelow(mediaPrefix, manifestPath))
    return { code: "join_not_possible", message: `the media of asset ${id} are not stored here` };
  return null;
}

/** The media of an asset that has no `partFault`, as a job joins them. */
export function joinedPart({ id, mediaPrefix, manifestPath, sharedPrefix, sharedMedia }: AssetRow): JoinedPart {
  const prefix = mediaPrefix as string;
  return {
    assetId: id,
    prefix,
    manifestPath: ownPath(prefix, manifestPath as string),
    sharedPrefix,
    sharedMedia,
  };
}

/** The same parts with the media that their assets have now: one that was encoded again has others. */
export async function currentParts(db: Db, parts: readonly JoinedPart[]): Promise<JoinedPart[]> {
  const now = new Map<number, JoinedPart>();
  for (const { assetId } of parts) {
    if (now.has(assetId)) continue;
    const asset = await db.select().from(assets).where(eq(assets.id, assetId)).get();
    if (asset && partFault(asset) === null) now.set(assetId, joinedPart(asset));
  }
  return parts.map((part) => now.get(part.assetId) ?? part);
}
