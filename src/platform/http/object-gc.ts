import { and, eq, gt } from "drizzle-orm";
import type { App } from "#app.ts";
import { HttpError } from "#lib/base";
import type { Db } from "#storage/db/open.ts";
import { objectGarbage } from "#storage/db/schema.ts";
import { writeSmallObject } from "#storage/objects/small-objects.ts";
import type { ObjectStore, PutOptions } from "#storage/objects/store.ts";

/** Far longer than writing and referencing a small object takes. */
const PENDING_MS = 3_600_000;

/**
 * Garbage collection of objects. An object key is registered as garbage before its bytes are written, and unregistered
 * in the transaction whose row references it; a transaction that drops a reference registers the key again. After a
 * crash at any point, no row references a missing object, and no unreferenced object remains.
 */
export async function putPending(
  app: App,
  objects: ObjectStore,
  key: string,
  body: Uint8Array,
  options: Pick<PutOptions, "contentType"> = {},
): Promise<void> {
  await registerPending(app, [key]);
  await writeSmallObject(objects, key, body, options);
}

/**
 * Registers new keys, or prefixes, as garbage before objects are written there. The caller must reference them with
 * `markReferenced` within `forMs`.
 */
export const registerPending = (app: App, keys: readonly string[], forMs = PENDING_MS) =>
  app.write(async (tx) => scheduleDeletion(tx, app, keys, forMs));

/** Runs in the transaction whose row references `key`. Throws when the object was deleted in the meantime. */
export async function markReferenced(tx: Db, key: string): Promise<void> {
  const registered = await tx.delete(objectGarbage).where(eq(objectGarbage.objectKey, key)).returning().get();
  if (!registered) throw new HttpError(503, "storage_unavailable", "Storage was too slow; try again.");
}

/**
 * Runs in the transaction that drops the references to keys, or to all keys under prefixes, which end in a slash. They
 * are deleted after `inMs`.
 */
export const scheduleDeletion = async (tx: Db, app: App, keys: readonly string[], inMs = 0) => {
  const rows = [...new Set(keys)].map((objectKey) => ({ objectKey, dueAt: app.clock.now() + inMs }));
  if (rows.length > 0) await tx.insert(objectGarbage).values(rows).onConflictDoNothing();
};

/** A PUT that began while its URL was valid may end this much later. */
const LATE_PUT_MS = 3_600_000;

/**
 * How long after now an object may still arrive at a URL that was valid until `until`, in milliseconds: 0 where this server
 * answers for URLs, because it refuses them at once.
 */
export const lateMs = (app: App, until: number): number =>
  app.objects && app.objects.addressOrigin !== null ? Math.max(0, until - app.clock.now()) + LATE_PUT_MS : 0;

/** Makes a registered key or prefix, which nothing references, due in `inMs`, or leaves it as it is when it is due before. */
export const hastenDeletion = async (tx: Db, app: App, key: string, inMs: number) => {
  const dueAt = app.clock.now() + inMs;
  await tx
    .update(objectGarbage)
    .set({ dueAt })
    .where(and(eq(objectGarbage.objectKey, key), gt(objectGarbage.dueAt, dueAt)));
};
