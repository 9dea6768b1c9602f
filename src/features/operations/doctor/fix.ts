import { eq } from "drizzle-orm";
import type { App } from "#app.ts";
import { markMissing } from "#features/batch-uploads/batch-upload.ts";
import { loseText } from "#features/subtitles/store.ts";
import { rejoinOf } from "#features/transcoding/lifecycle/rejoin.ts";
import { lastJob, repairLoss } from "#features/transcoding/lifecycle/repair.ts";
import { HttpError, mapBounded } from "#lib/base";
import { isDeletionHeld } from "#platform/http/removal-hold.ts";
import { pagesOf } from "#storage/db/pages.ts";
import { assets, subtitles } from "#storage/db/schema.ts";
import { InvalidKey } from "#storage/objects/keys.ts";
import { listAll } from "#storage/objects/list-all.ts";
import type { ObjectStore } from "#storage/objects/store.ts";
import { storageLocationOf } from "../migration/storage-location.ts";
import { moveToTrash } from "../migration/trash.ts";
import { collectReferences } from "./collect-references.ts";
import { ReferenceIndex } from "./reference-index.ts";
import { type Loss, YOUNG_MS } from "./scan-storage.ts";

const AT_ONCE = 16;
/** The database is read again before each batch of this size, so that objects referenced meanwhile are kept. */
const REMOVED_AT_ONCE = 10_000;

/** What was done about a missing object. `left`: nothing could be done now, and why. */
export type FixResult =
  | { done: "remade" | "rejoined" | "errored" | "forgotten" | "failed" | "reopened" }
  | { left: string };

/** What `--fix` can do about missing media of a joined asset, a clause; null for any other loss. */
export async function adviceOn({ db }: App, { asset: id, lost }: Loss): Promise<string | null> {
  if (id === null) return null;
  const asset = await db.select().from(assets).where(eq(assets.id, id)).get();
  if (asset?.sourceKey !== "") return null;
  const keys = new Set(lost.map(({ key }) => key));
  const rejoin = await rejoinOf(db, asset, { job: await lastJob(db, id), lost: keys });
  if (rejoin === null) return null;
  return rejoin.can === "now" ? "doctor --fix joins its parts again" : rejoin.reason;
}

/** Repairs the consequences of missing objects of one asset, or of a delivery, as far as possible. */
export async function fixLoss(app: App, objects: ObjectStore, { asset, lost }: Loss): Promise<FixResult[]> {
  const settled: FixResult[] = [];
  for (const { row } of lost.filter(({ kind }) => kind === "delivery"))
    settled.push((await markMissing(app, row)) ? { done: "reopened" } : { left: "its batch has ended" });
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

/** Size of the remaining media of an asset. */
async function mediaBytesOf(app: App, objects: ObjectStore, id: number): Promise<number> {
  const row = await app.db.select({ prefix: assets.mediaPrefix }).from(assets).where(eq(assets.id, id)).get();
  let bytes = 0;
  if (!row?.prefix) return bytes;
  for await (const object of listAll(objects, row.prefix)) bytes += object.bytes;
  return bytes;
}

type Removing = { objects: ObjectStore; file: string; signal: AbortSignal; tell(removed: number): void };
export type Removed = { objects: number; bytes: number; left: string | null };

/**
 * Moves unreferenced objects to the trash, after checking each again against a second list of references and in
 * storage. Does nothing while a backup copies objects, or storage is being migrated.
 */
export async function removeUnreferenced(
  app: App,
  index: ReferenceIndex,
  { objects, file, signal, tell }: Removing,
): Promise<Removed> {
  const removed: Removed = { objects: 0, bytes: 0, left: null };
  const pages = pagesOf({ from: "", limit: REMOVED_AT_ONCE, keyOf: ({ key }: { key: string }) => key }, async (after) =>
    index.leftAfter(after, REMOVED_AT_ONCE),
  );
  for await (const some of pages) {
    removed.left = await delayReason(app);
    if (removed.left !== null) return removed;
    const now = await ReferenceIndex.open(file);
    try {
      await collectReferences(app, now, signal);
      const unnamed = some.filter(({ key }) => !now.isNamed(key));
      await mapBounded(unnamed, { atOnce: AT_ONCE, signal }, async ({ key }) => {
        const bytes = await remove(app, objects, key);
        if (bytes === null) return;
        removed.objects++;
        removed.bytes += bytes;
        tell(removed.objects);
      });
    } finally {
      await now.close();
    }
  }
  return removed;
}

async function delayReason(app: App): Promise<string | null> {
  if (await isDeletionHeld(app)) return "a backup is copying objects; run it again when that has completed";
  const phase = (await storageLocationOf(app.db))?.phase ?? "settled";
  return phase === "settled" ? null : `storage is being migrated (${phase}); run it again when that has completed`;
}

/** Its size; null for an object that is gone, was rewritten, or whose key is too long to be moved. */
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
