import { and, asc, eq } from "drizzle-orm";
import type { App } from "#app.ts";
import { HttpError } from "#lib/base";
import type { Db } from "#storage/db/open.ts";
import { type AssetRow, type StaticRenditionRow, staticRenditions } from "#storage/db/schema.ts";
import type { StaticSize } from "../assets/static-names.ts";

/** In the order of their creation; at most one of each name. */
export const staticRenditionsOf = (db: Db, assetId: number): Promise<StaticRenditionRow[]> =>
  db
    .select()
    .from(staticRenditions)
    .where(eq(staticRenditions.assetId, assetId))
    .orderBy(asc(staticRenditions.id))
    .all();

/**
 * Adds a static rendition to an asset that was read in the same transaction. `size` of its file, where it is known. Emits no
 * event: see `emitStaticAdded`. Throws 409 where there is one of the name.
 */
export async function addStaticRendition(
  tx: Db,
  app: App,
  { id: assetId, tenantId }: AssetRow,
  name: string,
  size?: StaticSize | null,
): Promise<StaticRenditionRow> {
  const same = and(eq(staticRenditions.assetId, assetId), eq(staticRenditions.name, name));
  if (await tx.select({ id: staticRenditions.id }).from(staticRenditions).where(same).get())
    throw new HttpError(409, "asset_conflict", `The asset already has the static rendition ${name}.`);
  const now = app.clock.now();
  const stored = size && size.bytes !== null ? { bytes: size.bytes, bytesVersion: size.version } : {};
  const values = { tenantId, assetId, name, ...stored, createdAt: now, updatedAt: now };
  return tx.insert(staticRenditions).values(values).returning().get();
}
