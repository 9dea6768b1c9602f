import { inArray, sql } from "drizzle-orm";
import type { App } from "#app.ts";
import { backgroundPacer, mapBounded } from "#lib/base";
import { parseKey, TENANTS, TRASH } from "#model/object-keys.ts";
import { transcodingJobs } from "#storage/db/schema.ts";
import { listPages } from "#storage/objects/list-all.ts";
import type { ObjectInfo, ObjectStore } from "#storage/objects/store.ts";
import { REFERENCE_QUERIES } from "../backup/references.ts";
import type { Reference, ReferenceIndex } from "./reference-index.ts";

/** Newer objects may not be referenced yet: uploads, encodes and commits take hours. */
export const YOUNG_MS = 24 * 3_600_000;

/** A bucket without a prefix of its own may contain millions of foreign objects, which are only reported. */
const MAX_FOREIGN = 10_000;
const AT_ONCE = 16;
const ROWS_AT_ONCE = 200;

export type ScanResult = {
  objects: number;
  bytes: number;
  young: number;
  /** Not a key that vodbox creates: left alone. */
  unknown: number;
  unknownKeys: string[];
};

type Options = { signal: AbortSignal; tell(looked: number): void };
const SHOWN = 3;

/** Scans every object in storage once. Records which referenced objects exist, and which objects are unreferenced. */
export async function scanStorage(
  app: App,
  objects: ObjectStore,
  index: ReferenceIndex,
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
      if (index.see(key)) continue;
      if (!isOwnKey(key)) {
        seen.unknown++;
        if (seen.unknownKeys.length < SHOWN) seen.unknownKeys.push(key);
      } else if (modifiedAt.getTime() > youngFrom) seen.young++;
      else index.leave(key, bytes);
    }
    tell(seen.objects);
  }
  return seen;
}

/** Any other object belongs to another program, and is never removed. */
function isOwnKey(key: string): boolean {
  const parsed = parseKey(key);
  return parsed !== null && parsed.kind !== "trash";
}

/** Vodbox's objects, and of those before and after them only whether there are any. */
async function* everything(objects: ObjectStore): AsyncGenerator<ObjectInfo[]> {
  const foreign = async function* (from: string, isFar: (key: string) => boolean) {
    let left = MAX_FOREIGN;
    for await (const page of listPages(objects, "", { after: from })) {
      const near = page.filter(({ key }) => !isFar(key)).slice(0, left);
      left -= near.length;
      yield near;
      if (near.length < page.length || left === 0) return;
    }
  };
  yield* foreign("", (key) => key >= TENANTS);
  yield* listPages(objects, TENANTS);
  // The trash is emptied by a scheduled task, so it is skipped.
  yield* foreign(`${TENANTS}\u{10ffff}`, (key) => key >= TRASH);
  yield* foreign(`${TRASH}\u{10ffff}`, () => false);
}

/** Referenced objects that are missing: all of one asset together, or of deliveries without an asset. */
export type Loss = { asset: number | null; lost: Reference[]; isBeingMade: boolean };

/** Each is looked up again: objects written since the scan began, or deleted with their row, are not missing. */
export async function* findLosses(
  app: App,
  objects: ObjectStore,
  index: ReferenceIndex,
  signal: AbortSignal,
): AsyncGenerator<Loss> {
  let some: Reference[] = [];
  for (const one of index.unseen()) {
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
  const heads = await mapBounded(some, { atOnce: AT_ONCE, signal }, ({ key }) => objects.head(key));
  const missing = some.filter((_, index) => heads[index] === null);
  if (missing.length === 0) return;
  const still = await stillReferenced(app, missing);
  const ofAssets = Map.groupBy(still, ({ asset }) => asset);
  const busy = await beingMade(
    app,
    [...ofAssets.keys()].filter((id) => id !== null),
  );
  for (const [asset, ofOne] of ofAssets) yield { asset, lost: ofOne, isBeingMade: asset !== null && busy.has(asset) };
}

/** The row may have dropped its reference, and the object been deleted for that reason. */
async function stillReferenced(app: App, references: readonly Reference[]): Promise<Reference[]> {
  const remaining: Reference[] = [];
  for (const [kind, ofKind] of Map.groupBy(references, (one) => one.kind)) {
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
    remaining.push(...ofKind.filter(({ row, key }) => keys.get(row)?.key === key && keys.get(row)?.required === 1));
  }
  return remaining;
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
