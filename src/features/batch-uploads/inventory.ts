import { and, asc, eq, gt, ne } from "drizzle-orm";
import type { App } from "#app.ts";
import { batchPrefix, ownPath } from "#model/object-keys.ts";
import { storageOf } from "#platform/http/storage.ts";
import { pagesOf } from "#storage/db/pages.ts";
import { type BatchRow, batchUploads } from "#storage/db/schema.ts";
import { listAll } from "#storage/objects/list-all.ts";
import { readSmallObject } from "#storage/objects/small-objects.ts";

/** The objects of a batch in storage, by relative key, listed once. */
export type Inventory = {
  /** `announced` is null for an object without an upload. */
  objects: ReadonlyMap<string, { bytes: number; announced: number | null }>;
  /** The whole small object, or its first bytes; null when it was deleted in the meantime. */
  read(key: string, first?: number): Promise<Buffer | null>;
};

const PAGE = 1000;

export async function inventoryOf(app: App, batch: BatchRow): Promise<Inventory> {
  const store = storageOf(app);
  const prefix = batchPrefix(batch);
  const objects = new Map<string, { bytes: number; announced: number | null }>();
  for await (const { key, bytes } of listAll(store, prefix))
    objects.set(ownPath(prefix, key), { bytes, announced: null });
  const pages = pagesOf({ from: 0, limit: PAGE, keyOf: (row: { id: number }) => row.id }, (after) =>
    app.db
      .select({ id: batchUploads.id, key: batchUploads.objectKey, bytes: batchUploads.bytesExpected })
      .from(batchUploads)
      .where(and(eq(batchUploads.batchId, batch.id), gt(batchUploads.id, after), ne(batchUploads.status, "aborted")))
      .orderBy(asc(batchUploads.id))
      .limit(PAGE)
      .all(),
  );
  for await (const rows of pages)
    for (const row of rows) {
      const object = objects.get(row.key);
      if (object) object.announced = row.bytes;
    }
  return {
    objects,
    async read(key, first) {
      const bytes = objects.get(key)?.bytes ?? 0;
      if (bytes === 0) return Buffer.alloc(0);
      const range = first === undefined ? undefined : { start: 0, end: Math.min(first, bytes) - 1 };
      return readSmallObject(store, prefix + key, { range });
    },
  };
}
