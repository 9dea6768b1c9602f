import { type App, forApp } from "#app.ts";
import { clientClosed, HttpError, sleep } from "#lib/base";
import { pathBelow, segmentAt } from "#model/object-keys.ts";
import type { AssetRow } from "#storage/db/schema.ts";
import type { ObjectStore } from "#storage/objects/store.ts";
import type { SegmentRef } from "../transcoding/tasks/covering.ts";
import { abandonSegment, requestSegment } from "../transcoding/tasks/on-request.ts";

/** Players give up on a response after ten seconds. */
const MAX_WAIT_MS = 8000;
/** Looking at a file costs microseconds, a request to S3 a network round trip. */
const LOOK_MS = { local: 100, remote: 300 };
/** How often the task of a segment is looked up again: its worker may fail. */
const ASK_MS = 1000;
const MAX_WAITING = 500;
const MAX_WAITING_OF_TENANT = 100;

/** Requests that wait for segments, and the segments that are waited for. */
const waiting = forApp(() => ({
  total: 0,
  byTenant: new Map<number, number>(),
  byKey: new Map<string, Waited>(),
}));
/** A segment, and how many requests wait for it. `abandoned`: all of them were aborted; `gone`: its precedence is withdrawn. */
type Waited = { end: Promise<End>; requests: number; abandoned: AbortController; gone: Promise<void> };

/** `stored`: it is in storage. */
type End = "stored" | "later" | "none";

type Wanted = { objects: ObjectStore; asset: AssetRow; key: string };

/**
 * Waits until a segment of an asset that is not encoded completely is in storage; it is encoded now if no worker has begun
 * it. Returns when it is there, and for other files and segments that do not exist. Throws 503 `segment_not_ready` with
 * Retry-After when it takes too long or a limit is reached, 499 when the client disconnects.
 */
export async function waitForSegment(app: App, wanted: Wanted, signal: AbortSignal): Promise<void> {
  const { objects, asset, key } = wanted;
  const segment = segmentAt(pathBelow(asset.mediaPrefix ?? "", key) ?? key);
  if (segment === null || segment.number === 0) return;
  if (await objects.head(key)) return;
  const all = waiting(app);
  const { tenantId } = asset;
  const own = all.byTenant.get(tenantId) ?? 0;
  if (all.total >= MAX_WAITING || own >= MAX_WAITING_OF_TENANT) notReady();
  all.total++;
  all.byTenant.set(tenantId, own + 1);
  try {
    // Otherwise that would also be the end of this request's precedence.
    for (let last = all.byKey.get(key); last?.abandoned.signal.aborted; last = all.byKey.get(key)) await last.gone;
    const waited = all.byKey.get(key) ?? beginWaiting(app, wanted, { ...segment, number: segment.number - 1 });
    if ((await untilAborted(waited, signal)) === "later") notReady();
  } finally {
    all.total--;
    const left = (all.byTenant.get(tenantId) ?? 1) - 1;
    if (left > 0) all.byTenant.set(tenantId, left);
    else all.byTenant.delete(tenantId);
  }
}

/** One for all requests of a segment; it continues for others when one of them ends. */
function beginWaiting(app: App, wanted: Wanted, ref: SegmentRef): Waited {
  const { byKey } = waiting(app);
  const abandoned = new AbortController();
  const end = follow(app, wanted, { ref, abandoned: abandoned.signal });
  // All requests may have ended when it fails.
  const settled = end.then(
    () => {},
    () => {},
  );
  const gone = settled
    .then(() => (abandoned.signal.aborted && !app.stopping.aborted ? abandon(app, wanted, ref) : undefined))
    .finally(() => byKey.delete(wanted.key));
  const waited: Waited = { end, requests: 0, abandoned, gone };
  byKey.set(wanted.key, waited);
  return waited;
}

const abandon = (app: App, { asset }: Wanted, ref: SegmentRef) =>
  abandonSegment(app, asset, ref).catch((error: unknown) =>
    app.log.warn({ error: String(error), asset_id: asset.id }, "A request that was dropped keeps its precedence."),
  );

async function follow(
  app: App,
  { objects, asset, key }: Wanted,
  { ref, abandoned }: { ref: SegmentRef; abandoned: AbortSignal },
): Promise<End> {
  const deadline = performance.now() + MAX_WAIT_MS;
  const lookMs = objects.localPath(key) === null ? LOOK_MS.remote : LOOK_MS.local;
  let askAt = 0;
  while (performance.now() < deadline && !app.stopping.aborted && !abandoned.aborted) {
    if (performance.now() >= askAt) {
      const availability = await requestSegment(app, asset, ref);
      // It may have been stored since, by the task that has just completed.
      if (availability !== "coming") return (await objects.head(key)) ? "stored" : availability;
      askAt = performance.now() + ASK_MS;
    }
    await sleep(lookMs, undefined, { signal: abandoned }).catch(() => {});
    if (await objects.head(key)) return "stored";
  }
  return "later";
}

async function untilAborted(waited: Waited, signal: AbortSignal): Promise<End> {
  const aborted = Promise.withResolvers<never>();
  const onAbort = () => aborted.reject(clientClosed());
  signal.addEventListener("abort", onAbort, { once: true });
  if (signal.aborted) onAbort();
  waited.requests++;
  try {
    return await Promise.race([waited.end, aborted.promise]);
  } finally {
    signal.removeEventListener("abort", onAbort);
    waited.requests--;
    if (signal.aborted && waited.requests === 0) waited.abandoned.abort();
  }
}

function notReady(): never {
  throw new HttpError(503, "segment_not_ready", "The segment is not encoded yet; retry.", {
    headers: { "retry-after": "2", "cache-control": "no-store", "access-control-allow-origin": "*" },
  });
}
