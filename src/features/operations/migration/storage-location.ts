import { eq } from "drizzle-orm";
import type { App } from "#app.ts";
import { UserError } from "#lib/base";
import type { StoreKind } from "#model/enums.ts";
import type { OpenStore } from "#platform/config/stores.ts";
import type { Db } from "#storage/db/open.ts";
import { type StorageLocationRow, storageLocation } from "#storage/db/schema.ts";
import { layered } from "#storage/objects/layered.ts";
import type { ObjectStore } from "#storage/objects/store.ts";
import { createStorePair, forgettingCopies, mirroringDeletes, type StorePair } from "#storage/objects/store-pair.ts";

export const storageLocationOf = (db: Db): Promise<StorageLocationRow | undefined> =>
  db.select().from(storageLocation).where(eq(storageLocation.id, 1)).get();

/** Writes the row. Fields that are not given are unchanged. */
export const setStorageLocation = (app: App, change: Partial<StorageLocationRow>) =>
  app.write(async (tx) => {
    const set = { ...change, updatedAt: app.clock.now() };
    return tx.update(storageLocation).set(set).where(eq(storageLocation.id, 1)).returning().get();
  });

type StorePhase = Pick<StorageLocationRow, "active" | "other" | "phase">;
type Arranged = { store: ObjectStore; pair: StorePair | null };

/**
 * The store that the row names, else that of the settings. Before the switch, and after the end, the active store does
 * not need the other one, which may be unavailable or without settings. In between both are needed.
 */
export async function openStores(row: StorePhase | undefined, kind: StoreKind, open: OpenStore): Promise<Arranged> {
  if (!row) return { store: await open(kind), pair: null };
  const active = await open(row.active);
  if (row.other === null) return { store: active, pair: null };
  const isSwitched = row.phase === "switching" || row.phase === "draining";
  const other = await open(row.other).catch((error) => {
    if (isSwitched && error instanceof UserError)
      throw new UserError(
        `Objects are on their way from ${row.other} to ${row.active} storage, and both are needed until that is over. ${error.message}`,
      );
    if (!(error instanceof UserError)) throw error;
    return null;
  });
  if (other === null) return { store: active, pair: null };
  if (isSwitched) {
    const pair = createStorePair(other, active);
    return { store: layered(pair), pair };
  }
  if (row.phase === "settled" || row.phase === "cleaning")
    return { store: forgettingCopies(active, other), pair: null };
  const pair = createStorePair(active, other);
  return { store: mirroringDeletes(pair), pair };
}

/** A notice for the operator when settings and record differ; null when they agree. */
export const disagreement = (row: StorageLocationRow | undefined, configured: string): string | null =>
  row && row.active !== configured && row.phase === "settled"
    ? `VODBOX_STORAGE is ${configured}, but the objects were migrated to ${row.active} storage, which is used. Set VODBOX_STORAGE=${row.active}, or migrate back: vodbox admin storage migrate --to ${configured}`
    : null;
