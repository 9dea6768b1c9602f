import { mapBounded } from "#lib/base";
import { directoryOf, isPrefix } from "#model/object-keys.ts";
import { listPages } from "./list-all.ts";
import type { ObjectStore } from "./store.ts";

const AT_ONCE = 16;

/** Objects between two checks whether to continue. */
const STEP = 100;

/**
 * Deletes every object under `prefix`, which must end in `/`, or until `mayContinue` resolves with false; returns their
 * number. May be repeated after a failure.
 */
export async function deletePrefix(
  store: ObjectStore,
  prefix: string,
  { mayContinue }: { mayContinue?: () => Promise<boolean> } = {},
): Promise<number> {
  // "tenants/1" would include tenant 10, and "" everything.
  const isFolder = isPrefix(prefix) && directoryOf(prefix) !== "" && !isPrefix(directoryOf(prefix));
  if (!isFolder) throw new Error("A prefix to delete must not be empty and must end in a slash.");
  let deleted = 0;
  for await (const objects of listPages(store, prefix)) {
    for (let from = 0; from < objects.length; from += STEP) {
      if (mayContinue && !(await mayContinue())) return deleted;
      const step = objects.slice(from, from + STEP);
      await mapBounded(step, { atOnce: AT_ONCE }, ({ key }) => store.delete(key));
      deleted += step.length;
    }
  }
  return deleted;
}
