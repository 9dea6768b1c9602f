import { eq } from "drizzle-orm";
import { assets, subtitles } from "../../../../storage/db/schema.ts";
import { InvalidKey } from "../../../../storage/objects/keys.ts";
import type { ObjectStore } from "../../../../storage/objects/store.ts";
import type { App } from "../../../app.ts";
import { isDeletionHeld } from "../../../http/removal-hold.ts";
import { HttpError } from "../../../lib/errors.ts";
import { markBatchUploadLost } from "../../ingest/batch-upload.ts";
import { repairLoss } from "../../jobs/repair.ts";
import { loseText } from "../../subtitles/store.ts";
import { storageLocationOf } from "../migration/storage-location.ts";
import { moveToTrash } from "../trash.ts";
import { collectReferences } from "./collect-references.ts";
import { ReferenceIndex } from "./reference-index.ts";
import { type Loss, YOUNG_MS } from "./scan-storage.ts";

const AT_ONCE = 16;
/** The database is read anew before each so many: what was named meanwhile stays. */
const REMOVED_AT_ONCE = 10_000;
const LISTED = 10_000;

/** What was done about a loss. `left`: nothing could be done now, and why. */
export type FixResult = { done: "remade" | "errored" | "forgotten" | "failed" | "reopened" } | { left: string };

/** Does what can honestly be done about what is lost of one asset, or of a delivery. */
export async function fixLoss(app: App, objects: ObjectStore, { asset, lost }: Loss): Promise<FixResult[]> {
  const settled: FixResult[] = [];
  for (const { row } of lost.filter(({ kind }) => kind === "delivery"))
    settled.push((await markBatchUploadLost(app, row)) ? { done: "reopened" } : { left: "its batch is over" });
  for (const { row, key } of lost.filter(({ kind }) => kind === "subtitle"))
    settled.push({ done: (await failSubtitle(app, row, key)) ? "failed" : "forgotten" });
  const media = lost.filter(({ kind }) => kind !== "subtitle" && kind !== "delivery");
  if (asset === null || media.length === 0) return settled;
  try {
    const keys = new Set(media.map(({ key }) => key));
    settled.push(await repairLoss(app, asset, { lost: keys, mediaBytes: await mediaBytesOf(app, objects, asset) }));
  } catch (error) {
    if (!(error instanceof HttpError)) throw error;
    settled.push({ left: error.message });
  }
  return settled;
}

const failSubtitle = (app: App, id: number, key: string): Promise<boolean> =>
  app.write(async (tx) => {
    const row = await tx.select().from(subtitles).where(eq(subtitles.id, id)).get();
    if (row?.objectKey !== key) return false;
    await loseText(tx, app, row);
    return true;
  });

/** Of what is left of an asset's media. */
async function mediaBytesOf(app: App, objects: ObjectStore, id: number): Promise<number> {
  const row = await app.db.select({ prefix: assets.mediaPrefix }).from(assets).where(eq(assets.id, id)).get();
  let bytes = 0;
  if (!row?.prefix) return bytes;
  let cursor: string | null = null;
  do {
    const page: Awaited<ReturnType<ObjectStore["list"]>> = await objects.list(row.prefix, {
      limit: LISTED,
      ...(cursor !== null && { cursor }),
    });
    for (const object of page.objects) bytes += object.bytes;
    cursor = page.cursor;
  } while (cursor !== null);
  return bytes;
}

type Removing = { objects: ObjectStore; file: string; signal: AbortSignal; tell(removed: number): void };
export type Removed = { objects: number; bytes: number; left: string | null };

/**
 * Moves unreferenced objects to the trash: looked up once more, by a second list of all that rows name, and one by one in
 * storage. Nothing while a backup copies objects, or storage is being migrated.
 */
export async function removeUnreferenced(
  app: App,
  notes: ReferenceIndex,
  { objects, file, signal, tell }: Removing,
): Promise<Removed> {
  const removed: Removed = { objects: 0, bytes: 0, left: null };
  for (let after = ""; ; ) {
    const some = notes.leftAfter(after, REMOVED_AT_ONCE);
    const last = some.at(-1);
    if (last === undefined) return removed;
    after = last.key;
    removed.left = await heldUp(app);
    if (removed.left !== null) return removed;
    const now = await ReferenceIndex.open(file);
    try {
      await collectReferences(app, now, signal);
      const unnamed = some.filter(({ key }) => !now.isNamed(key));
      for (let at = 0; at < unnamed.length; at += AT_ONCE) {
        signal.throwIfAborted();
        const bytes = await Promise.all(unnamed.slice(at, at + AT_ONCE).map(({ key }) => remove(app, objects, key)));
        for (const one of bytes) {
          if (one === null) continue;
          removed.objects++;
          removed.bytes += one;
        }
        tell(removed.objects);
      }
    } finally {
      await now.close();
    }
  }
}

async function heldUp(app: App): Promise<string | null> {
  if (await isDeletionHeld(app)) return "a backup copies objects; run it again when that is over";
  const phase = (await storageLocationOf(app.db))?.phase ?? "settled";
  return phase === "settled" ? null : `storage is being migrated (${phase}); run it again when that is over`;
}

/** Its bytes; null for one that is gone, was put again, or whose key is too long to be moved. */
async function remove(app: App, objects: ObjectStore, key: string): Promise<number | null> {
  const info = await objects.head(key);
  if (!info || info.modifiedAt.getTime() > app.clock.now() - YOUNG_MS) return null;
  try {
    await moveToTrash(app, objects, info);
  } catch (error) {
    if (error instanceof InvalidKey) return null;
    throw error;
  }
  return info.bytes;
}
