import type { ObjectInfo, ObjectStore } from "./store.ts";

/** A local store reads a whole directory for each page; S3 returns smaller pages, and says so. */
const LISTED = 10_000;

/** The objects under `prefix` in key order, page by page; `after` excludes this key and those before it. */
export async function* listPages(
  store: Pick<ObjectStore, "list">,
  prefix: string,
  { after = "", limit = LISTED }: { after?: string; limit?: number } = {},
): AsyncGenerator<ObjectInfo[]> {
  // The cursors of all stores are the last key of a page.
  let cursor: string | null = after === "" ? null : Buffer.from(after).toString("base64url");
  do {
    const page: Awaited<ReturnType<ObjectStore["list"]>> = await store.list(prefix, {
      limit,
      ...(cursor !== null && { cursor }),
    });
    yield page.objects;
    cursor = page.cursor;
  } while (cursor !== null);
}

/** The same, one by one. */
export async function* listAll(store: Pick<ObjectStore, "list">, prefix: string): AsyncGenerator<ObjectInfo> {
  for await (const objects of listPages(store, prefix)) yield* objects;
}
