import { eq, sql } from "drizzle-orm";
import type { App } from "#app.ts";
import { mediaBytesOf } from "#features/assets/stored-bytes.ts";
import { rejoinOf } from "#features/transcoding/lifecycle/rejoin.ts";
import { lastJob, rejoinDamaged } from "#features/transcoding/lifecycle/repair.ts";
import { backgroundPacer, HttpError } from "#lib/base";
import { assetPrefix, isBelow } from "#model/object-keys.ts";
import { pagesOf } from "#storage/db/pages.ts";
import { type AssetRow, assets, type JobRow } from "#storage/db/schema.ts";
import { listAll } from "#storage/objects/list-all.ts";
import type { ObjectStore } from "#storage/objects/store.ts";
import type { Check } from "./finding.ts";

const PAGE = 1000;
const SHOWN = 5;

type Options = { fix: boolean; signal: AbortSignal };
/** Bytes of all files together: those in storage, and those that the job has written. */
type Damage = { bytes: number; expected: number };

/**
 * Compares the size of joined media with what their job has written: nothing else can write them again. Only their sum is
 * known, so a file whose content has changed and not its size is not found. With `fix` they are joined again. Pages of
 * assets, and of the objects of one asset at a time, are in memory.
 */
export const examineJoinedMedia =
  (app: App, objects: ObjectStore, { fix, signal }: Options): Check =>
  async () => {
    let examined = 0;
    let damaged = 0;
    let fixed = 0;
    const faults: string[] = [];
    for await (const id of joinedAssets(app, signal)) {
      examined++;
      const found = await damageOf(app, objects, id, signal);
      if (found === null) continue;
      damaged++;
      const blocked = await damagedPart(app, objects, found.job, signal);
      const left = blocked ?? (fix ? await joinAgain(app, found.asset) : "doctor --fix joins its parts again");
      if (left === null) fixed++;
      else if (faults.length < SHOWN)
        faults.push(`asset ${id}: ${found.bytes} bytes instead of ${found.expected} (media; ${left})`);
    }
    if (damaged === 0) return `the media of ${examined} joined assets have the size that was written`;
    const done = fixed > 0 ? [`${fixed} assets are joined again from their parts`] : [];
    const more = damaged - fixed > faults.length ? " …" : "";
    const left = faults.length > 0 ? [`${done.length > 0 ? "left: " : ""}${faults.join(", ")}${more}`] : [];
    const detail = `the media of ${damaged} of ${examined} joined assets are damaged: ${[...done, ...left].join("; ")}`;
    return { ok: fixed === damaged, detail, fixed };
  };

/** Ids of assets whose last job joins them, in ascending order: parts are older than what is joined from them. */
async function* joinedAssets({ db }: App, signal: AbortSignal): AsyncGenerator<number> {
  const pace = backgroundPacer();
  type Row = { id: number; joined: number | null };
  const pages = pagesOf({ from: 0, limit: PAGE, keyOf: (row: Row) => row.id }, (after) =>
    db.all<Row>(sql`select id, (select joined is not null from transcoding_jobs where asset_id = assets.id
      order by transcoding_jobs.id desc limit 1) as joined from assets where id > ${after} order by id limit ${PAGE}`),
  );
  for await (const rows of pages) {
    for (const { id, joined } of rows) {
      await pace();
      signal.throwIfAborted();
      if (joined === 1) yield id;
    }
  }
}

/** Null also when the asset cannot be joined again, is being joined, or misses a file that has a check of its own. */
async function damageOf(
  app: App,
  objects: ObjectStore,
  id: number,
  signal: AbortSignal,
): Promise<(Damage & { asset: AssetRow; job: JobRow }) | null> {
  const asset = await app.db.select().from(assets).where(eq(assets.id, id)).get();
  const job = await lastJob(app.db, id);
  if (!asset || job?.status !== "completed" || asset.playbackStatus !== "ready") return null;
  // A job that joins the asset with nothing has read the media that it has replaced.
  if (job.joined?.every(({ assetId }) => assetId === id)) return null;
  const rejoin = await rejoinOf(app.db, asset, { job, lost: new Set() });
  if (rejoin === null || rejoin.can === "never") return null;
  const damage = await sizeFault(app, objects, asset, signal);
  return damage && { ...damage, asset, job };
}

/** Null when the media have the size that was written, or it is not known. */
async function sizeFault(app: App, objects: ObjectStore, asset: AssetRow, signal: AbortSignal): Promise<Damage | null> {
  const { id, mediaPrefix, manifestPath, dashManifestPath, thumbnailPath, storyboardPath, mp4Path } = asset;
  // Other prefixes also contain objects that are counted elsewhere.
  if (mediaPrefix === null || !isBelow(assetPrefix(asset), mediaPrefix)) return null;
  const named = new Set([manifestPath, dashManifestPath, thumbnailPath, storyboardPath, mp4Path]);
  named.delete(null);
  let bytes = 0;
  for await (const object of listAll(objects, mediaPrefix)) {
    signal.throwIfAborted();
    named.delete(object.key);
    bytes += object.bytes;
  }
  const now = await app.db.select().from(assets).where(eq(assets.id, id)).get();
  if (named.size > 0 || now?.mediaPrefix !== mediaPrefix) return null;
  const expected = await mediaBytesOf(app.db, now);
  return bytes === expected ? null : { bytes, expected };
}

/** A clause about a part that must be repaired first: the damage would be joined, and not be found any more. */
async function damagedPart(
  app: App,
  objects: ObjectStore,
  { joined }: JobRow,
  signal: AbortSignal,
): Promise<string | null> {
  for (const id of new Set(joined?.map(({ assetId }) => assetId))) {
    const part = await app.db.select().from(assets).where(eq(assets.id, id)).get();
    const job = await lastJob(app.db, id);
    if (job?.status === "queued" || job?.status === "running") return `its part, asset ${id}, is being encoded`;
    if (part && (await sizeFault(app, objects, part, signal))) return `its part, asset ${id}, is damaged too`;
  }
  return null;
}

/** Null when a job is queued; otherwise why not, a clause. */
async function joinAgain(app: App, asset: AssetRow): Promise<string | null> {
  try {
    const outcome = await rejoinDamaged(app, asset);
    return "left" in outcome ? outcome.left : null;
  } catch (error) {
    if (!(error instanceof HttpError)) throw error;
    return error.message;
  }
}
