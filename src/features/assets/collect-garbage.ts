import { and, asc, eq, inArray, lte } from "drizzle-orm";
import type { App } from "#app.ts";
import { isPrefix } from "#model/object-keys.ts";
import { isDeletionHeld } from "#platform/http/removal-hold.ts";
import { objectGarbage } from "#storage/db/schema.ts";
import { deleteUnshared } from "./shared-media.ts";

const BATCH = 100;
/** An object that cannot be deleted must not block the queue forever. */
const RETRY_MS = 600_000;

/** Deletes due objects and returns their number. Objects that cannot be deleted now stay registered. */
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
  const deleted: string[] = [];
  const failed: string[] = [];
  for (const { objectKey } of due) {
    try {
      if (isPrefix(objectKey)) await deleteUnshared(app, objects, objectKey);
      else await objects.delete(objectKey);
      deleted.push(objectKey);
    } catch (error) {
      failed.push(objectKey);
      app.log.warn({ err: error, key: objectKey }, "an unreferenced object could not be deleted");
    }
  }
  if (due.length === 0) return 0;
  await app.write(async (tx) => {
    await tx.delete(objectGarbage).where(
      inArray(
        objectGarbage.objectKey,
        deleted.filter((key) => !isPrefix(key)),
      ),
    );
    // A prefix that was scheduled again meanwhile has become due again.
    for (const { objectKey, dueAt } of due)
      if (isPrefix(objectKey) && deleted.includes(objectKey))
        await tx
          .delete(objectGarbage)
          .where(and(eq(objectGarbage.objectKey, objectKey), eq(objectGarbage.dueAt, dueAt)));
    const retryAt = app.clock.now() + RETRY_MS;
    await tx.update(objectGarbage).set({ dueAt: retryAt }).where(inArray(objectGarbage.objectKey, failed));
  });
  return deleted.length;
}

/** The same, until nothing is due: thousands of assets may be deleted at once. Stops when an object cannot be deleted. */
export async function collectAllGarbage(app: App): Promise<void> {
  while (!app.stopping.aborted && (await collectGarbage(app)) === BATCH);
}
