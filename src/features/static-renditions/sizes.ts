import { eq } from "drizzle-orm";
import type { App } from "#app.ts";
import { mapBounded } from "#lib/base";
import { type AssetRow, type StaticRenditionRow, staticRenditions } from "#storage/db/schema.ts";
import type { StaticSize } from "../assets/static-names.ts";
import { staticFiles } from "./deliver.ts";

const AT_ONCE = 4;

/** The size that was stored with a row. */
const storedIn = ({ bytes, bytesVersion: version }: StaticRenditionRow): StaticSize | undefined =>
  version === null ? undefined : { bytes, version };

/** Bytes of the file of a static rendition, computed once for each version of it; null where it has none, or it is unknown. */
export async function bytesOf(app: App, asset: AssetRow, row: StaticRenditionRow): Promise<number | null> {
  const { bytes, version } = await staticFiles(app).sizeOf(asset, row.name, storedIn(row));
  if (bytes !== null && version !== row.bytesVersion) await store(app, row.id, { bytes, version });
  return bytes;
}

/** The same for several static renditions of an asset, in their order. */
export const bytesOfAll = (
  app: App,
  asset: AssetRow,
  rows: readonly StaticRenditionRow[],
): Promise<(number | null)[]> => mapBounded(rows, { atOnce: AT_ONCE }, (row) => bytesOf(app, asset, row));

/** A database that cannot be written to does not prevent reading: the size is computed again. */
const store = (app: App, id: number, { bytes, version: bytesVersion }: StaticSize): Promise<unknown> =>
  app
    .write((tx) => tx.update(staticRenditions).set({ bytes, bytesVersion }).where(eq(staticRenditions.id, id)).run())
    .catch(() => undefined);
