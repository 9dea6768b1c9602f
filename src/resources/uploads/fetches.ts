import { and, asc, eq, gt, lte } from "drizzle-orm";
import type { Db } from "../../../storage/db/open.ts";
import { assets, type SourceFetchRow, sourceFetches, type UploadRow, uploads } from "../../../storage/db/schema.ts";
import { type App, forApp } from "../../app.ts";
import { emit } from "../../events/emit.ts";
import { dropObjects } from "../../http/unwanted.ts";
import { HttpError } from "../../lib/errors.ts";
import { completeUpload } from "./complete.ts";
import { FetchFailed, fetchSource } from "./fetch-source.ts";

const AT_ONCE = 2;
/** A fetch that nobody tells of for so long is taken over: its process is dead. */
const CLAIM_MS = 60_000;
const TELL_MS = 2000;
const RETRY_MS = [10_000, 60_000, 300_000];

const state = forApp(() => ({ running: new Map<number, Promise<void>>(), isRecovered: false }));

/** Starts what is due and has room; does not wait for it. Answers the fetches that run. */
export async function startFetches(app: App): Promise<Promise<void>[]> {
  const { running } = state(app);
  if (!app.objects || app.stopping.aborted || running.size >= AT_ONCE) return [...running.values()];
  const now = app.clock.now();
  await recover(app, now);
  const isDue = lte(sourceFetches.dueAt, now);
  if (await app.db.select({ id: sourceFetches.uploadId }).from(sourceFetches).where(isDue).limit(1).get()) {
    const claimed = await app.write((tx) => claimDue(tx, now, AT_ONCE - running.size));
    for (const fetch of claimed) {
      const run = runFetch(app, fetch)
        .catch((error) => app.log.error({ err: error, upload_id: fetch.uploadId }, "a fetch of a source went wrong"))
        .finally(() => running.delete(fetch.uploadId));
      running.set(fetch.uploadId, run);
    }
  }
  return [...running.values()];
}

/** At a start nobody fetches, where the database is ours alone: what was under way, or waited to be tried again, is due. */
async function recover(app: App, now: number): Promise<void> {
  const known = state(app);
  if (known.isRecovered) return;
  if (app.commits() !== null)
    await app.write(
      async (tx) => void (await tx.update(sourceFetches).set({ dueAt: now }).where(gt(sourceFetches.dueAt, now))),
    );
  known.isRecovered = true;
}

async function claimDue(tx: Db, now: number, most: number): Promise<SourceFetchRow[]> {
  const due = await tx
    .select()
    .from(sourceFetches)
    .where(lte(sourceFetches.dueAt, now))
    .orderBy(asc(sourceFetches.dueAt))
    .limit(most)
    .all();
  for (const { uploadId } of due) await putOff(tx, uploadId, now + CLAIM_MS);
  return due;
}

const putOff = (tx: Db, uploadId: number, dueAt: number) =>
  tx.update(sourceFetches).set({ dueAt }).where(eq(sourceFetches.uploadId, uploadId));
const forget = (tx: Db, uploadId: number) => tx.delete(sourceFetches).where(eq(sourceFetches.uploadId, uploadId));
const pendingOf = (db: Db, id: number) =>
  db
    .select()
    .from(uploads)
    .where(and(eq(uploads.id, id), eq(uploads.status, "pending")))
    .get();

async function runFetch(app: App, fetch: SourceFetchRow): Promise<void> {
  const { uploadId: id } = fetch;
  const upload = await pendingOf(app.db, id);
  if (!upload) return void (await app.write(async (tx) => forget(tx, id)));
  let received = 0;
  // Renews the claim and the session, and shows how far it is.
  const tell = () =>
    app.write(async (tx) => {
      const now = app.clock.now();
      await putOff(tx, id, now + CLAIM_MS);
      const expiresAt = now + app.config.upload_ttl_seconds * 1000;
      await tx.update(uploads).set({ bytesReceived: received, expiresAt, updatedAt: now }).where(eq(uploads.id, id));
    });
  const timer = setInterval(() => tell().catch(() => {}), TELL_MS);
  try {
    const bytes = await fetchSource(app, upload, fetch.url, {
      onLength: (length) => expect(app, id, length),
      onBytes: (sum) => {
        received = sum;
      },
      async confirm() {
        if (!(await pendingOf(app.db, id))) throw new FetchFailed("upload_gone", "The upload was given up.", false);
      },
    });
    await expect(app, id, bytes);
    await completeUpload(app, { kind: "admin" }, id, bytes);
    await app.write(async (tx) => forget(tx, id));
  } catch (error) {
    // Who is stopped begins anew at the next start, and it does not count.
    if (app.stopping.aborted) return;
    if (!(error instanceof FetchFailed || error instanceof HttpError))
      app.log.warn({ err: error, upload_id: id }, "a source could not be kept");
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

const expect = (app: App, id: number, bytesExpected: number) =>
  app.write(async (tx) => void (await tx.update(uploads).set({ bytesExpected }).where(eq(uploads.id, id))));

/** Tried again after a while, or failed for good: told of once, in the transaction that says so. */
async function endAttempt(tx: Db, app: App, fetch: SourceFetchRow, upload: UploadRow, failure: FetchFailed) {
  const { uploadId: id } = fetch;
  const now = app.clock.now();
  const wait = failure.retryable ? RETRY_MS[fetch.failures] : undefined;
  if (wait !== undefined) {
    const next = { failures: fetch.failures + 1, dueAt: now + wait };
    return void (await tx.update(sourceFetches).set(next).where(eq(sourceFetches.uploadId, id)));
  }
  await forget(tx, id);
  if (!(await pendingOf(tx, id))) return;
  await tx.update(uploads).set({ status: "failed", updatedAt: now }).where(eq(uploads.id, id));
  const change = {
    inputStatus: "failed" as const,
    errorCode: failure.code,
    errorMessage: failure.message,
    updatedAt: now,
  };
  const asset = await tx.update(assets).set(change).where(eq(assets.id, upload.assetId)).returning().get();
  await dropObjects(tx, app, [upload.objectKey]);
  const data = {
    upload_id: id,
    asset_id: String(upload.assetId),
    external_id: asset.externalId,
    filename: upload.filename,
    bytes_received: null,
  };
  await emit(tx, { tenantId: upload.tenantId, type: "video.upload.failed", data, now });
}
