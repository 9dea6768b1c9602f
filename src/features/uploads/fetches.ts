import { and, asc, eq, gt, inArray, isNull, lte, or, sql } from "drizzle-orm";
import { type App, forApp } from "#app.ts";
import { HttpError, setInterval } from "#lib/base";
import { nextOwner } from "#platform/limits/fair-queue.ts";
import type { Db } from "#storage/db/open.ts";
import { type SourceFetchRow, sourceFetches, type UploadRow, uploads } from "#storage/db/schema.ts";
import { abandonUpload } from "../transcoding/lifecycle/uploads.ts";
import { announceBytes, pendingOf, STEP_BYTES, setExpected } from "./announce.ts";
import { completeUpload } from "./complete.ts";
import { FetchFailed, fetchSource } from "./fetch-source.ts";

/** Fetches of one tenant at once while others wait. */
const PER_TENANT = 2;
/** A fetch that is not renewed for this long is taken over: its process is dead. */
const CLAIM_MS = 60_000;
const RENEW_MS = 2000;
const RETRY_MS = [10_000, 60_000, 300_000];
const state = forApp(() => ({ running: new Map<number, Promise<void>>(), isRecovered: false }));

/** Starts due fetches up to the limit, without waiting for them. Returns the number of fetches in this process. */
export async function startFetches(app: App): Promise<Promise<void>[]> {
  const { running } = state(app);
  if (!app.objects || app.stopping.aborted) return [...running.values()];
  await recover(app);
  const now = app.clock.now();
  const isDue = and(lte(sourceFetches.dueAt, now), isFree(now));
  if (await app.db.select({ id: sourceFetches.uploadId }).from(sourceFetches).where(isDue).limit(1).get()) {
    for (const fetch of await app.write((tx) => claimDue(tx, app))) {
      const run = runFetch(app, fetch)
        .catch((error) => app.log.error({ err: error, upload_id: fetch.uploadId }, "fetching a source failed"))
        .finally(() => running.delete(fetch.uploadId));
      running.set(fetch.uploadId, run);
    }
  }
  return [...running.values()];
}

/** At a start no fetch runs, if the database is not shared: fetches in progress or waiting for a retry are due. */
async function recover(app: App): Promise<void> {
  const known = state(app);
  if (known.isRecovered) return;
  known.isRecovered = true;
  if (app.commits() === null || (app.peers && !app.peers.isFirst)) return;
  const now = app.clock.now();
  await app.write(async (tx) => {
    await tx.update(sourceFetches).set({ claimedUntil: null, preempted: false });
    await tx.update(sourceFetches).set({ dueAt: now }).where(gt(sourceFetches.dueAt, now));
  });
}

const isFree = (now: number) => or(isNull(sourceFetches.claimedUntil), lte(sourceFetches.claimedUntil, now));

/**
 * Claims due fetches, round robin by tenant. While others wait a tenant has at most PER_TENANT at once; alone it may
 * use all slots. When it has more and another tenant arrives, one of its fetches is asked to yield.
 */
async function claimDue(tx: Db, app: App): Promise<SourceFetchRow[]> {
  const now = app.clock.now();
  const isRunning = gt(sourceFetches.claimedUntil, now);
  const running = await tx.select().from(sourceFetches).where(isRunning).all();
  const count = sql<number>`count(*)`;
  const oldest = sql<number>`min(${sourceFetches.dueAt})`;
  const waiting = await tx
    .select({ tenantId: sourceFetches.tenantId, waits: count, served: oldest })
    .from(sourceFetches)
    .where(and(lte(sourceFetches.dueAt, now), isFree(now)))
    .groupBy(sourceFetches.tenantId)
    .all();
  const owners = waiting.map((each) => ({
    ...each,
    running: running.filter(({ tenantId }) => tenantId === each.tenantId).length,
  }));
  const claimed: SourceFetchRow[] = [];
  let freeSlots = app.config.fetch_concurrency - running.length;
  for (; freeSlots > 0; freeSlots--) {
    const open = owners.filter(({ waits }) => waits > 0);
    const next = nextOwner(open, open.length > 1 ? PER_TENANT : app.config.fetch_concurrency);
    if (!next) break;
    claimed.push(await claimOne(tx, next.tenantId, now));
    next.running++;
    next.waits--;
  }
  if (freeSlots <= 0) await askToYield(tx, owners, [...running, ...claimed]);
  return claimed;
}

async function claimOne(tx: Db, tenantId: number, now: number): Promise<SourceFetchRow> {
  const first = tx
    .select({ id: sourceFetches.uploadId })
    .from(sourceFetches)
    .where(and(eq(sourceFetches.tenantId, tenantId), lte(sourceFetches.dueAt, now), isFree(now)))
    .orderBy(asc(sourceFetches.dueAt), asc(sourceFetches.uploadId))
    .limit(1);
  const set = { claimedUntil: now + CLAIM_MS, preempted: false };
  return tx.update(sourceFetches).set(set).where(inArray(sourceFetches.uploadId, first)).returning().get();
}

type Waiting = { tenantId: number; waits: number; running: number };

/** Asks the newest fetches of tenants above PER_TENANT to yield to tenants below it. */
async function askToYield(tx: Db, owners: readonly Waiting[], running: readonly SourceFetchRow[]): Promise<void> {
  const demand = owners.reduce(
    (sum, { waits, running }) => sum + Math.min(waits, Math.max(0, PER_TENANT - running)),
    0,
  );
  let missing = demand - running.filter(({ preempted }) => preempted).length;
  const mine = Map.groupBy(
    running.filter(({ preempted }) => !preempted),
    ({ tenantId }) => tenantId,
  );
  while (missing-- > 0) {
    const [most] = [...mine.values()].toSorted((a, b) => b.length - a.length);
    if (!most || most.length <= PER_TENANT) return;
    const newest = most.toSorted((a, b) => a.uploadId - b.uploadId).pop() as SourceFetchRow;
    most.splice(most.indexOf(newest), 1);
    await tx.update(sourceFetches).set({ preempted: true }).where(eq(sourceFetches.uploadId, newest.uploadId));
  }
}

const forget = (tx: Db, uploadId: number) => tx.delete(sourceFetches).where(eq(sourceFetches.uploadId, uploadId));
/** Another tenant's fetch takes the slot; this one restarts when a slot is free. */
class Preempted extends Error {}

async function runFetch(app: App, fetch: SourceFetchRow): Promise<void> {
  const { uploadId: id } = fetch;
  const upload = await pendingOf(app.db, id);
  if (!upload) return void (await app.write(async (tx) => forget(tx, id)));
  let received = 0;
  const preempted = new AbortController();
  // Renews the claim and the session, records progress, and reads whether the fetch must yield.
  const renew = async () => {
    const row = await app.write(async (tx) => {
      const now = app.clock.now();
      const expiresAt = now + app.config.upload_ttl_seconds * 1000;
      await tx.update(uploads).set({ bytesReceived: received, expiresAt, updatedAt: now }).where(eq(uploads.id, id));
      const set = { claimedUntil: now + CLAIM_MS };
      return tx.update(sourceFetches).set(set).where(eq(sourceFetches.uploadId, id)).returning().get();
    });
    if (row?.preempted) preempted.abort(new Preempted());
  };
  const timer = setInterval(() => renew().catch(() => {}), RENEW_MS);
  let announced = 0;
  const announce = async (bytes: number, ahead: number) => {
    const allowed = await announceBytes(app, id, bytes, ahead);
    if (allowed === null) throw new FetchFailed("upload_gone", "The upload was aborted.", false);
    announced = allowed;
  };
  let isLengthKnown = false;
  try {
    const bytes = await fetchSource(app, upload, fetch.url, {
      signal: preempted.signal,
      async onLength(length) {
        isLengthKnown = true;
        await announce(length, 0);
      },
      async onBytes(sum) {
        received = sum;
        if (!isLengthKnown && sum > announced) await announce(sum, STEP_BYTES);
      },
      async confirm() {
        if (!(await pendingOf(app.db, id))) throw new FetchFailed("upload_gone", "The upload was aborted.", false);
      },
    });
    await app.write(async (tx) => void (await setExpected(tx, id, bytes)));
    await completeUpload(app, { kind: "admin" }, id, bytes);
    await app.write(async (tx) => forget(tx, id));
  } catch (error) {
    // A fetch that was stopped restarts at the next start, without counting an attempt.
    if (app.stopping.aborted) return;
    if (preempted.signal.aborted) return void (await app.write((tx) => putBack(tx, app, id)));
    if (!(error instanceof FetchFailed || error instanceof HttpError))
      app.log.warn({ err: error, upload_id: id }, "a fetched source could not be stored");
    const failure =
      error instanceof FetchFailed
        ? error
        : error instanceof HttpError && error.code === "quota_exceeded"
          ? new FetchFailed(error.code, error.message, false)
          : new FetchFailed("source_not_stored", "The source could not be stored.", true);
    await app.write((tx) => endAttempt(tx, app, fetch, upload, failure));
  } finally {
    clearInterval(timer);
  }
}

async function putBack(tx: Db, app: App, id: number): Promise<void> {
  const set = { claimedUntil: null, preempted: false, dueAt: app.clock.now() };
  await tx.update(sourceFetches).set(set).where(eq(sourceFetches.uploadId, id));
}

/** Schedules a retry, or fails the upload and emits the event in the same transaction. */
async function endAttempt(tx: Db, app: App, fetch: SourceFetchRow, upload: UploadRow, failure: FetchFailed) {
  const { uploadId: id } = fetch;
  const now = app.clock.now();
  const wait = failure.retryable ? RETRY_MS[fetch.failures] : undefined;
  if (wait !== undefined) {
    const next = { failures: fetch.failures + 1, dueAt: now + wait, claimedUntil: null, preempted: false };
    return void (await tx.update(sourceFetches).set(next).where(eq(sourceFetches.uploadId, id)));
  }
  await forget(tx, id);
  if (!(await pendingOf(tx, id))) return;
  await abandonUpload(tx, app, upload, "failed", failure);
}
