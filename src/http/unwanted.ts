import { asc, eq, inArray, lte } from "drizzle-orm";
import type { Db } from "../../storage/db/open.ts";
import { unwantedObjects } from "../../storage/db/schema.ts";
import { deletePrefix } from "../../storage/objects/delete-prefix.ts";
import type { ObjectStore, PutOptions } from "../../storage/objects/store.ts";
import type { App } from "../app.ts";
import { HttpError } from "../lib/errors.ts";
import { isRemovalHeld } from "./removal-hold.ts";

/** Far longer than a small object takes to be written and named. */
const UNNAMED_FOR_MS = 3_600_000;
const BATCH = 100;
/** What could not be removed does not stand before the rest for ever. */
const TRY_AGAIN_MS = 600_000;

/**
 * Rows and objects in step through every crash. An object is written down as unwanted before its bytes are put, and
 * wanted in the transaction that names it; what a transaction lets go of is unwanted from then on. So whatever dies in
 * between, no row names an object that is not there, and no object is left that nobody names.
 */
export async function putUnnamed(
  app: App,
  objects: ObjectStore,
  key: string,
  body: Uint8Array,
  options: PutOptions = {},
): Promise<void> {
  await noteUnnamed(app, [key]);
  await objects.put(key, body, options);
}

/** Written down before objects are made under these new keys, or prefixes, by whoever has `keepObject` follow within `forMs`. */
export const noteUnnamed = (app: App, keys: readonly string[], forMs = UNNAMED_FOR_MS) =>
  app.write(async (tx) => dropObjects(tx, app, keys, forMs));

/** In the transaction whose row names `key`, an object of `putUnnamed`. Throws when it was swept meanwhile. */
export async function keepObject(tx: Db, key: string): Promise<void> {
  const kept = await tx.delete(unwantedObjects).where(eq(unwantedObjects.objectKey, key)).returning().get();
  if (!kept) throw new HttpError(503, "storage_unavailable", "Storage was too slow; try again.");
}

/** In the transaction that lets go of keys, or of all under prefixes, which end in a slash. Removed after `inMs`. */
export const dropObjects = async (tx: Db, app: App, keys: readonly string[], inMs = 0) => {
  const rows = [...new Set(keys)].map((objectKey) => ({ objectKey, dueAt: app.clock.now() + inMs }));
  if (rows.length > 0) await tx.insert(unwantedObjects).values(rows).onConflictDoNothing();
};

/** Removes what is due, and tells how much that was. What cannot be removed now stays written down. */
export async function sweepUnwanted(app: App): Promise<number> {
  const { objects } = app;
  if (!objects || (await isRemovalHeld(app))) return 0;
  const due = await app.db
    .select()
    .from(unwantedObjects)
    .where(lte(unwantedObjects.dueAt, app.clock.now()))
    .orderBy(asc(unwantedObjects.dueAt))
    .limit(BATCH)
    .all();
  const gone: string[] = [];
  const kept: string[] = [];
  for (const { objectKey } of due) {
    try {
      if (objectKey.endsWith("/")) await deletePrefix(objects, objectKey);
      else await objects.delete(objectKey);
      gone.push(objectKey);
    } catch (error) {
      kept.push(objectKey);
      app.log.warn({ err: error, key: objectKey }, "an object that nobody names could not be removed");
    }
  }
  if (due.length === 0) return 0;
  await app.write(async (tx) => {
    await tx.delete(unwantedObjects).where(inArray(unwantedObjects.objectKey, gone));
    const dueAt = app.clock.now() + TRY_AGAIN_MS;
    await tx.update(unwantedObjects).set({ dueAt }).where(inArray(unwantedObjects.objectKey, kept));
  });
  return gone.length;
}
