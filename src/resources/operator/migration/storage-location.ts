import { eq } from "drizzle-orm";
import type { Db } from "../../../../storage/db/open.ts";
import { type StorageLocationRow, storageLocation } from "../../../../storage/db/schema.ts";
import { layered } from "../../../../storage/objects/layered.ts";
import type { ObjectStore } from "../../../../storage/objects/store.ts";
import {
  createStorePair,
  forgettingCopies,
  mirroringDeletes,
  type StorePair,
} from "../../../../storage/objects/store-pair.ts";
import type { App } from "../../../app.ts";
import type { OpenStore, StoreKind } from "../../../config/stores.ts";
import { UserError } from "../../../lib/errors.ts";

export const storageLocationOf = (db: Db): Promise<StorageLocationRow | undefined> =>
  db.select().from(storageLocation).where(eq(storageLocation.id, 1)).get();

/** Writes the row. What is not named stays as it is. */
export const setStorageLocation = (app: App, change: Partial<StorageLocationRow>) =>
  app.write(async (tx) => {
    const set = { ...change, updatedAt: app.clock.now() };
    return tx.update(storageLocation).set(set).where(eq(storageLocation.id, 1)).returning().get();
  });

type Place = Pick<StorageLocationRow, "active" | "other" | "phase">;
type Arranged = { store: ObjectStore; pair: StorePair | null };

/**
 * The store that the row speaks of, else that of the settings. Before the switch, and after the end, the active store
 * does without the other: then it may be away, or its settings be gone. In between it can't.
 */
export async function openStores(row: Place | undefined, kind: StoreKind, open: OpenStore): Promise<Arranged> {
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

/** What an operator should know when settings and record disagree; null when they do not. */
export const disagreement = (row: StorageLocationRow | undefined, configured: string): string | null =>
  row && row.active !== configured && row.phase === "settled"
    ? `VODBOX_STORAGE says ${configured}, but the objects were migrated to ${row.active} storage, which is used; set VODBOX_STORAGE=${row.active}, or move them back: vodbox admin storage migrate --to ${configured}`
    : null;
