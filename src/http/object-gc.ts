import { asc, eq, inArray, lte } from "drizzle-orm";
import type { Db } from "../../storage/db/open.ts";
import { objectGarbage } from "../../storage/db/schema.ts";
import { deletePrefix } from "../../storage/objects/delete-prefix.ts";
import type { ObjectStore, PutOptions } from "../../storage/objects/store.ts";
import type { App } from "../app.ts";
import { HttpError } from "../lib/errors.ts";
import { isDeletionHeld } from "./removal-hold.ts";

/** Far longer than a small object takes to be written and named. */
const PENDING_MS = 3_600_000;
const BATCH = 100;
/** What could not be removed does not stand before the rest for ever. */
const RETRY_MS = 600_000;

/**
 * Rows and objects in step through every crash. An object is written down as unwanted before its bytes are put, and
 * wanted in the transaction that names it; what a transaction lets go of is unwanted from then on. So whatever dies in
 * between, no row names an object that is not there, and no object is left that nobody names.
 */
export async function putPending(
  app: App,
  objects: ObjectStore,
  key: string,
  body: Uint8Array,
  options: PutOptions = {},
): Promise<void> {
  await registerPending(app, [key]);
  await objects.put(key, body, options);
}

/** Written down before objects are made under these new keys, or prefixes, by whoever has `keepObject` follow within `forMs`. */
export const registerPending = (app: App, keys: readonly string[], forMs = PENDING_MS) =>
  app.write(async (tx) => scheduleDeletion(tx, app, keys, forMs));

/** In the transaction whose row names `key`, an object of `putUnnamed`. Throws when it was swept meanwhile. */
export async function markReferenced(tx: Db, key: string): Promise<void> {
  const kept = await tx.delete(objectGarbage).where(eq(objectGarbage.objectKey, key)).returning().get();
  if (!kept) throw new HttpError(503, "storage_unavailable", "Storage was too slow; try again.");
}

/** In the transaction that lets go of keys, or of all under prefixes, which end in a slash. Removed after `inMs`. */
export const scheduleDeletion = async (tx: Db, app: App, keys: readonly string[], inMs = 0) => {
  const rows = [...new Set(keys)].map((objectKey) => ({ objectKey, dueAt: app.clock.now() + inMs }));
  if (rows.length > 0) await tx.insert(objectGarbage).values(rows).onConflictDoNothing();
};

/** Removes what is due, and tells how much that was. What cannot be removed now stays written down. */
export async function collectGarbage(app: App): Promise<number> {
  const { objects } = app;
  if (!objects || (await isDeletionHeld(app))) return 0;
  const due = await app.db
    .select()
    .from(objectGarbage)
    .where(lte(objectGarbage.dueAt, app.clock.now()))
    .orderBy(asc(objectGarbage.dueAt))
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
    await tx.delete(objectGarbage).where(inArray(objectGarbage.objectKey, gone));
    const dueAt = app.clock.now() + RETRY_MS;
    await tx.update(objectGarbage).set({ dueAt }).where(inArray(objectGarbage.objectKey, kept));
  });
  return gone.length;
}
