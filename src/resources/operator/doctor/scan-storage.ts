import { inArray, sql } from "drizzle-orm";
import { transcodingJobs } from "../../../../storage/db/schema.ts";
import type { ObjectInfo, ObjectStore } from "../../../../storage/objects/store.ts";
import type { App } from "../../../app.ts";
import { backgroundPacer } from "../../../lib/pace.ts";
import { REFERENCE_QUERIES } from "../backup/references.ts";
import { TRASH } from "../trash.ts";
import { isOwnKey } from "./own-keys.ts";
import type { Reference, ReferenceIndex } from "./reference-index.ts";

/** What is younger may be on its way to its row: uploads, encodes and commits take hours. */
export const YOUNG_MS = 24 * 3_600_000;

/** A local store reads a whole folder for each page; S3 gives fewer, and says so. */
const LISTED = 10_000;
const OURS = "tenants/";
/** A bucket without a prefix of ours may hold millions of others' objects, and those are only told of. */
const MAX_FOREIGN = 10_000;
const AT_ONCE = 16;
const ROWS_AT_ONCE = 200;

export type ScanResult = {
  objects: number;
  bytes: number;
  young: number;
  /** Named as nothing of ours is: left alone. */
  unknown: number;
  unknownKeys: string[];
};

type Options = { signal: AbortSignal; tell(looked: number): void };
const TOLD = 3;

/** Looks at every object in storage once. Notes which of those that rows name are there, and what nobody names. */
export async function scanStorage(
  app: App,
  objects: ObjectStore,
  notes: ReferenceIndex,
  { signal, tell }: Options,
): Promise<ScanResult> {
  const seen: ScanResult = { objects: 0, bytes: 0, young: 0, unknown: 0, unknownKeys: [] };
  const youngFrom = app.clock.now() - YOUNG_MS;
  const pace = backgroundPacer();
  for await (const page of everything(objects)) {
    for (const { key, bytes, modifiedAt } of page) {
      await pace();
      signal.throwIfAborted();
      seen.objects++;
      seen.bytes += bytes;
      if (notes.see(key)) continue;
      if (!isOwnKey(key)) {
        seen.unknown++;
        if (seen.unknownKeys.length < TOLD) seen.unknownKeys.push(key);
      } else if (modifiedAt.getTime() > youngFrom) seen.young++;
      else notes.leave(key, bytes);
    }
    tell(seen.objects);
  }
  return seen;
}

/** Ours, and of what lies before and behind it so much as says that it is there. */
async function* everything(objects: ObjectStore): AsyncGenerator<ObjectInfo[]> {
  const foreign = async function* (from: string, isFar: (key: string) => boolean) {
    let left = MAX_FOREIGN;
    for await (const page of pages(objects, "", from)) {
      const near = page.filter(({ key }) => !isFar(key)).slice(0, left);
      left -= near.length;
      yield near;
      if (near.length < page.length || left === 0) return;
    }
  };
  yield* foreign("", (key) => key >= OURS);
  yield* pages(objects, OURS, "");
  // The trash is emptied by a scheduled task, so it is skipped.
  yield* foreign(`${OURS}\u{10ffff}`, (key) => key >= TRASH);
  yield* foreign(`${TRASH}\u{10ffff}`, () => false);
}

async function* pages(objects: ObjectStore, prefix: string, after: string): AsyncGenerator<ObjectInfo[]> {
  // Both stores' cursors are the last key of a page.
  let cursor: string | null = Buffer.from(after).toString("base64url");
  do {
    const page: Awaited<ReturnType<ObjectStore["list"]>> = await objects.list(prefix, {
      limit: LISTED,
      ...(cursor && { cursor }),
    });
    yield page.objects;
    cursor = page.cursor;
  } while (cursor !== null);
}

/** What rows name and storage has not: all of one asset, or deliveries, which belong to none yet. */
export type Loss = { asset: number | null; lost: Reference[]; isBeingMade: boolean };

/** Looked for once more, each by itself: what was put since the survey began, and what was removed with its row, is not lost. */
export async function* findLosses(
  app: App,
  objects: ObjectStore,
  notes: ReferenceIndex,
  signal: AbortSignal,
): AsyncGenerator<Loss> {
  let some: Reference[] = [];
  for (const one of notes.unseen()) {
    const isNext = one.asset === null || one.asset !== some.at(-1)?.asset;
    if (isNext && some.length >= ROWS_AT_ONCE) {
      yield* lossesAmong(app, objects, some, signal);
      some = [];
    }
    some.push(one);
  }
  yield* lossesAmong(app, objects, some, signal);
}

async function* lossesAmong(
  app: App,
  objects: ObjectStore,
  some: readonly Reference[],
  signal: AbortSignal,
): AsyncGenerator<Loss> {
  const lost: Reference[] = [];
  for (let at = 0; at < some.length; at += AT_ONCE) {
    signal.throwIfAborted();
    const few = some.slice(at, at + AT_ONCE);
    const heads = await Promise.all(few.map(({ key }) => objects.head(key)));
    lost.push(...few.filter((_, index) => heads[index] === null));
  }
  if (lost.length === 0) return;
  const still = await stillNamed(app, lost);
  const ofAssets = Map.groupBy(still, ({ asset }) => asset);
  const busy = await beingMade(
    app,
    [...ofAssets.keys()].filter((id) => id !== null),
  );
  for (const [asset, ofOne] of ofAssets) yield { asset, lost: ofOne, isBeingMade: asset !== null && busy.has(asset) };
}

/** A row may have let go of its object, and the object be gone for that. */
async function stillNamed(app: App, lost: readonly Reference[]): Promise<Reference[]> {
  const found: Reference[] = [];
  for (const [kind, ofKind] of Map.groupBy(lost, (one) => one.kind)) {
    const naming = REFERENCE_QUERIES.find((one) => one.kind === kind);
    if (!naming) continue;
    const ids = sql.join(
      ofKind.map(({ row }) => sql`${row}`),
      sql`, `,
    );
    const rows = await app.db.all<{ id: number; key: string; required: number }>(
      sql`${sql.raw(naming.sql)} and ${sql.raw(naming.id)} in (${ids})`,
    );
    const keys = new Map(rows.map((row) => [row.id, row]));
    found.push(...ofKind.filter(({ row, key }) => keys.get(row)?.key === key && keys.get(row)?.required === 1));
  }
  return found;
}

async function beingMade({ db }: App, ids: readonly number[]): Promise<Set<number>> {
  if (ids.length === 0) return new Set();
  const rows = await db
    .select({ asset: transcodingJobs.assetId })
    .from(transcodingJobs)
    .where(sql`${inArray(transcodingJobs.assetId, [...ids])} and ${transcodingJobs.status} in ('queued', 'running')`)
    .all();
  return new Set(rows.map(({ asset }) => asset));
}
