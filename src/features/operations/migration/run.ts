import { type App, forApp } from "#app.ts";
import { mapBounded, sleep } from "#lib/base";
import type { StoreKind } from "#model/enums.ts";
import { TENANTS } from "#model/object-keys.ts";
import type { StorageLocationRow } from "#storage/db/schema.ts";
import { layered } from "#storage/objects/layered.ts";
import type { ObjectInfo } from "#storage/objects/store.ts";
import { forgettingCopies, type StorePair } from "#storage/objects/store-pair.ts";
import type { SwitchingStore } from "#storage/objects/switching.ts";
import { copyObject, isSame, joinedListing, type ListedPair } from "./copy-objects.ts";
import { unfinished, waitingFor } from "./in-progress.ts";
import { openStores, setStorageLocation, storageLocationOf } from "./storage-location.ts";

/** Tolerated difference between the clocks of a storage server and this machine. */
const SKEW_MS = 3_600_000;
const TELL_MS = 1000;
const AT_ONCE = 4;
const HALT_MS = 3000;

type Counts = Pick<
  StorageLocationRow,
  "objectsDone" | "bytesDone" | "objectsCopied" | "bytesCopied" | "objectsVerified" | "objectsFixed"
>;
type State = { running: Promise<void> | null; abort: AbortController; counts: Counts | null };
const stateOf = forApp((): State => ({ running: null, abort: new AbortController(), counts: null }));

/** Whether a migration runs in this process, and its progress. */
export const liveOf = (app: App) => {
  const { running, counts } = stateOf(app);
  return { running: running !== null, counts };
};

/** Continues the migration, unless it runs already; resolves when there is nothing more to do now. */
export function continueMigration(app: App): Promise<void> {
  const state = stateOf(app);
  if (!app.objects || app.stopping.aborted) return Promise.resolve();
  if (state.running) return state.running;
  const run = work(app, app.objects, state).finally(() => {
    if (state.running === run) Object.assign(state, { running: null, counts: null });
  });
  state.running = run;
  return run;
}

/**
 * Stops the run; completed work is kept. Storage that does not respond is awaited only briefly: a run that was asked to
 * stop writes no more to the record.
 */
export async function pauseMigration(app: App): Promise<void> {
  const state = stateOf(app);
  state.abort.abort();
  const moment = new AbortController();
  await Promise.race([state.running, sleep(HALT_MS, null, { signal: moment.signal }).catch(() => null)]);
  moment.abort();
  Object.assign(state, { running: null, counts: null, abort: new AbortController() });
}

async function work(app: App, objects: SwitchingStore, state: State): Promise<void> {
  const signal = AbortSignal.any([app.stopping, state.abort.signal]);
  try {
    for (let nextPhase = true; nextPhase && !signal.aborted; ) {
      const row = await storageLocationOf(app.db);
      if (!row || row.phase === "settled" || row.paused) return;
      nextPhase = await step(app, objects, row, { signal, state });
    }
  } catch (error) {
    if (signal.aborted) return;
    const { message } = error as Error;
    app.log.warn({ err: error }, "the storage migration is stalled");
    const row = await storageLocationOf(app.db);
    // Before the switch nothing depends on it, so it waits for the next request. After the switch it is retried
    // automatically.
    const paused = row?.phase !== "draining" && row?.phase !== "switching";
    if (row?.error !== message || row.paused !== paused) await setStorageLocation(app, { error: message, paused });
  }
}

type Run = { signal: AbortSignal; state: State };

/** Runs one phase. Returns whether the next can follow immediately. */
async function step(app: App, objects: SwitchingStore, row: StorageLocationRow, run: Run): Promise<boolean> {
  if (row.phase === "cleaning") return clean(app, objects, row, run);
  const pair = await pairIn(app, objects, row);
  if (row.phase === "copying") {
    await objects.deletionsOver();
    await pair.target.check();
    if (row.objectsTotal === null) return measure(app, pair, run);
    await pass(app, row, pair, run, async (seen, counts) => {
      if (seen.twin?.bytes !== seen.object.bytes) await copy(pair, seen.object, counts, run);
    });
    const next = row.quick ? "switching" : "verifying";
    if (next === "switching") return switchOver(app, objects, row, pair, run);
    await setStorageLocation(app, { phase: next, afterKey: "", objectsDone: 0, bytesDone: 0 });
    return true;
  }
  if (row.phase === "verifying") {
    await pass(app, row, pair, run, (seen, counts) => verify(pair, seen, counts, run));
    return switchOver(app, objects, row, pair, run);
  }
  if (row.phase === "switching") {
    // The process died between the record and the switch; work that began before now may use URLs of the source.
    await setStorageLocation(app, { phase: "draining", switchedAt: app.clock.now() });
    return true;
  }
  return drain(app, objects, row, pair, run);
}

/** The two stores, opened now when that was not possible at the start. */
async function pairIn(app: App, objects: SwitchingStore, row: StorageLocationRow): Promise<StorePair> {
  if (objects.pair) return objects.pair;
  await app.openStore(row.other ?? row.active);
  const { store, pair } = await openStores(row, row.active, app.openStore);
  if (!pair) throw new Error("No other storage is configured.");
  objects.use(store, pair);
  return pair;
}

async function measure(app: App, { source, target }: StorePair, { signal }: Run): Promise<boolean> {
  let objectsTotal = 0;
  let bytesTotal = 0;
  for await (const { seen } of joinedListing(source, target, "")) {
    signal.throwIfAborted();
    objectsTotal += seen.length;
    for (const { object } of seen) bytesTotal += object.bytes;
  }
  signal.throwIfAborted();
  await setStorageLocation(app, { objectsTotal, bytesTotal });
  return true;
}

type Each = (seen: ListedPair, counts: Counts) => Promise<void>;

/**
 * Calls `each` for all objects of the source that are not in progress, from where the last run stopped; updates the row
 * on the way.
 */
async function pass(
  app: App,
  row: StorageLocationRow,
  pair: StorePair,
  { signal, state }: Run,
  each: Each,
): Promise<void> {
  const { objectsDone, bytesDone, objectsCopied, bytesCopied, objectsVerified, objectsFixed } = row;
  const counts: Counts = { objectsDone, bytesDone, objectsCopied, bytesCopied, objectsVerified, objectsFixed };
  state.counts = counts;
  let reportedAt = performance.now();
  for await (const { seen, last } of joinedListing(pair.source, pair.target, row.afterKey)) {
    // After the switch they have all ended, and new work writes to the target.
    const keys = seen.map(({ object }) => object.key);
    const busy = row.phase === "draining" ? new Set<string>() : await unfinished(app, keys);
    await mapBounded(seen, { atOnce: AT_ONCE }, async (one) => {
      signal.throwIfAborted();
      if (!busy.has(one.object.key)) await each(one, counts);
      counts.objectsDone++;
      counts.bytesDone += one.object.bytes;
    });
    signal.throwIfAborted();
    if (last === null || performance.now() - reportedAt < TELL_MS) continue;
    reportedAt = performance.now();
    await setStorageLocation(app, { ...counts, afterKey: last });
  }
  signal.throwIfAborted();
  await setStorageLocation(app, counts);
}

async function copy(pair: StorePair, { key, bytes }: ObjectInfo, counts: Counts, { signal }: Run): Promise<void> {
  if (!(await copyObject(pair, key, signal))) return;
  counts.objectsCopied++;
  counts.bytesCopied += bytes;
}

/** Compares both; differing objects are copied again, and must be equal then. */
async function verify(pair: StorePair, { object, twin }: ListedPair, counts: Counts, run: Run): Promise<void> {
  const { key } = object;
  // It was written after the copying pass.
  if (!twin) await copy(pair, object, counts, run);
  if (!(await isSame(pair, key, run.signal))) {
    await copy(pair, object, counts, run);
    if (!(await isSame(pair, key, run.signal)))
      throw new Error(`${pair.target.kind} storage returned different bytes than were written: ${key}.`);
    counts.objectsFixed++;
  }
  counts.objectsVerified++;
}

async function switchOver(
  app: App,
  objects: SwitchingStore,
  row: StorageLocationRow,
  pair: StorePair,
  { signal }: Run,
): Promise<boolean> {
  await pair.target.check();
  signal.throwIfAborted();
  await setStorageLocation(app, {
    active: pair.target.kind,
    other: pair.source.kind,
    phase: "switching",
    afterKey: "",
    objectsDone: 0,
    bytesDone: 0,
    switchedAt: app.clock.now(),
  });
  // The key locks are kept: a copy in progress and a deletion exclude each other.
  objects.use(layered(pair), pair);
  await setStorageLocation(app, { phase: "draining", switchedAt: app.clock.now() });
  app.log.info({ from: row.active, to: pair.target.kind }, "storage was switched");
  return true;
}

/** When all work that began in the source has ended, objects written since the first pass are copied. */
async function drain(
  app: App,
  objects: SwitchingStore,
  row: StorageLocationRow,
  pair: StorePair,
  run: Run,
): Promise<boolean> {
  const waiting = await waitingFor(app, row.switchedAt ?? app.clock.now());
  if (waiting.uploads + waiting.jobs + waiting.batches > 0 || !objects.isQuiet()) return false;
  const since = (row.startedAt ?? 0) - (pair.source.clock === null ? 0 : SKEW_MS);
  await pass(app, row, pair, run, async (seen, counts) => {
    const { object, twin } = seen;
    const isThere = twin?.bytes === object.bytes;
    if (isThere && object.modifiedAt.getTime() < since) return;
    if (!isThere && row.quick) await copy(pair, object, counts, run);
    else await verify(pair, seen, counts, run);
  });
  await setStorageLocation(app, { phase: "settled", error: null, finishedAt: app.clock.now() });
  objects.use(forgettingCopies(pair.target, pair.source));
  return false;
}

/** Deletes old copies: only those whose object the active store has, with the same size. */
async function clean(app: App, objects: SwitchingStore, row: StorageLocationRow, { signal }: Run): Promise<boolean> {
  const active = await app.openStore(row.active);
  const old = await app.openStore(row.other as StoreKind);
  for await (const { seen } of joinedListing(old, active, "")) {
    const copies = seen.filter(({ object, twin }) => twin?.bytes === object.bytes);
    await mapBounded(copies, { atOnce: AT_ONCE }, async ({ object }) => {
      signal.throwIfAborted();
      await old.delete(object.key);
    });
  }
  // No one uploads there any more; the remains of an interrupted copy are unreferenced.
  for await (const { key, uploadId } of old.listMultiparts(TENANTS)) await old.abortMultipart(key, uploadId);
  signal.throwIfAborted();
  objects.use(active);
  await setStorageLocation(app, { phase: "settled", other: null, error: null });
  return false;
}

/**
 * The number and size of objects to copy from the active store to the other one, and of those that are already there.
 */
export async function estimate(app: App, from: StoreKind, to: StoreKind) {
  const sum = { objects: 0, bytes: 0, objects_there: 0, bytes_there: 0 };
  for await (const { seen } of joinedListing(await app.openStore(from), await app.openStore(to), "")) {
    for (const { object, twin } of seen) {
      const isThere = twin?.bytes === object.bytes;
      sum.objects++;
      sum.bytes += object.bytes;
      sum.objects_there += isThere ? 1 : 0;
      sum.bytes_there += isThere ? object.bytes : 0;
    }
  }
  return sum;
}
