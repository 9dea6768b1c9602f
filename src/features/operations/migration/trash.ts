import type { App } from "#app.ts";
import { parseKey, TRASH, trashPrefix } from "#model/object-keys.ts";
import { deletePrefix } from "#storage/objects/delete-prefix.ts";
import type { ObjectInfo, ObjectStore } from "#storage/objects/store.ts";
import { storageLocationOf } from "./storage-location.ts";

export const TRASH_DAYS = 7;
const DAY_MS = 86_400_000;
/** Limit on keys below `trash/` that vodbox did not create; each costs one list call. */
const MAX_UNKNOWN = 1000;

/**
 * Moves an object to `trash/<day>/<its key>`, from where it can be put back under its key for 7 days. Throws InvalidKey for
 * a key that is too long for that, and StorageFull; the object is where it was then.
 */
export async function moveToTrash(app: App, objects: ObjectStore, { key }: Pick<ObjectInfo, "key">): Promise<void> {
  const day = new Date(app.clock.now()).toISOString().slice(0, 10);
  await objects.copy(key, trashPrefix(day) + key);
  await objects.delete(key);
}

/** Deletes what has been in the trash for 7 whole days. Resolves with the number of objects. */
export async function emptyTrash(app: App): Promise<number> {
  const { objects, clock } = app;
  if (!objects) return 0;
  const location = await storageLocationOf(app.db);
  if (location && location.phase !== "settled") return 0;
  let deleted = 0;
  let after = "";
  for (let unknown = 0; unknown < MAX_UNKNOWN; ) {
    // Both stores' cursors are the last key of a page.
    const cursor = after === "" ? {} : { cursor: Buffer.from(after).toString("base64url") };
    const [next] = (await objects.list(TRASH, { limit: 1, ...cursor })).objects;
    if (!next) break;
    const parsed = parseKey(next.key);
    const day = parsed?.kind === "trash" ? parsed.day : undefined;
    const from = Date.parse(day ?? "");
    if (day === undefined || Number.isNaN(from)) {
      unknown++;
      after = next.key;
      continue;
    }
    // Counted from the end of the day, so that every object stays for 7 whole days.
    if (from + (TRASH_DAYS + 1) * DAY_MS <= clock.now()) deleted += await deletePrefix(objects, trashPrefix(day));
    after = `${trashPrefix(day)}\u{10ffff}`;
  }
  if (deleted > 0) app.log.info({ objects: deleted }, "emptied the trash");
  return deleted;
}
