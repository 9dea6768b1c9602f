import type { ObjectStore } from "./store.ts";

const AT_ONCE = 16;
/** A local store reads a whole folder for each page; S3 gives fewer, and says so. */
const LISTED = 10_000;

/** Deletes every object under `prefix`, which must end in `/`; returns how many. May be repeated after a failure. */
export async function deletePrefix(store: ObjectStore, prefix: string): Promise<number> {
  // "tenants/1" would take tenant 10 along, and "" everything.
  if (!/[^/]\/$/.test(prefix)) throw new Error("A prefix to delete must not be empty and must end in a slash.");
  let deleted = 0;
  let cursor: string | null = null;
  do {
    const page = await store.list(prefix, cursor === null ? { limit: LISTED } : { limit: LISTED, cursor });
    for (let i = 0; i < page.objects.length; i += AT_ONCE) {
      await Promise.all(page.objects.slice(i, i + AT_ONCE).map(({ key }) => store.delete(key)));
    }
    deleted += page.objects.length;
    cursor = page.cursor;
  } while (cursor !== null);
  return deleted;
}
