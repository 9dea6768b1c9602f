import { and, asc, eq, gt, ne } from "drizzle-orm";
import { type BatchRow, ingestUploads } from "../../../storage/db/schema.ts";
import type { App } from "../../app.ts";
import { storageOf } from "../../http/storage.ts";
import { prefixOf } from "./queries.ts";

/** What storage holds of a batch, by keys below it, listed once. */
export type Inventory = {
  /** `announced` is null for what nobody asked to upload. */
  objects: ReadonlyMap<string, { bytes: number; announced: number | null }>;
  /** All of an object, or its first bytes; null where it went meanwhile. */
  read(key: string, first?: number): Promise<Buffer | null>;
};

const PAGE = 1000;
/** A local store reads a whole folder for each page; S3 gives fewer, and says so. */
const LISTED = 10_000;

export async function inventoryOf(app: App, batch: BatchRow): Promise<Inventory> {
  const store = storageOf(app);
  const prefix = prefixOf(batch);
  const objects = new Map<string, { bytes: number; announced: number | null }>();
  let cursor: string | undefined;
  do {
    const page = await store.list(prefix, { cursor, limit: LISTED });
    for (const { key, bytes } of page.objects) objects.set(key.slice(prefix.length), { bytes, announced: null });
    cursor = page.cursor ?? undefined;
  } while (cursor !== undefined);
  for (let after = 0; ; ) {
    const rows = await app.db
      .select({ id: ingestUploads.id, key: ingestUploads.objectKey, bytes: ingestUploads.bytesExpected })
      .from(ingestUploads)
      .where(and(eq(ingestUploads.batchId, batch.id), gt(ingestUploads.id, after), ne(ingestUploads.status, "aborted")))
      .orderBy(asc(ingestUploads.id))
      .limit(PAGE)
      .all();
    for (const row of rows) {
      after = row.id;
      const object = objects.get(row.key);
      if (object) object.announced = row.bytes;
    }
    if (rows.length < PAGE) break;
  }
  return {
    objects,
    async read(key, first) {
      const bytes = objects.get(key)?.bytes ?? 0;
      if (bytes === 0) return Buffer.alloc(0);
      const range = first === undefined ? undefined : { start: 0, end: Math.min(first, bytes) - 1 };
      const found = await store.get(prefix + key, range);
      return found && Buffer.concat(await found.body.toArray());
    },
  };
}
