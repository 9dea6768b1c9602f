import type { App } from "#app.ts";
import { ownerOf, TENANTS } from "#model/object-keys.ts";
import { uploadOfKey } from "./queries.ts";

const DAY_MS = 86_400_000;

/** Deletes local files of uploads that have ended, where a crash prevented that. */
export async function sweepAppends(app: App): Promise<number> {
  const isWanted = async (key: string) => (await uploadOfKey(app.db, key))?.status === "pending";
  return (await app.objects?.appends?.sweep(isWanted)) ?? 0;
}

/**
 * Deletes what a request has appended for an upload that ended meanwhile: the end may have been faster than the first byte. Of an upload that waits for more bytes nothing is deleted.
 */
export async function discardEnded(app: App, objectKey: string): Promise<void> {
  if ((await uploadOfKey(app.db, objectKey))?.status !== "pending") await app.objects?.appends?.discard(objectKey);
}

/**
 * Aborts abandoned multipart uploads: of sessions that have ended, and of writes whose process died. A day after the
 * longest session, which leaves time for a regular end. Returns their number.
 */
export async function sweepParts(app: App): Promise<number> {
  const { objects } = app;
  if (!objects) return 0;
  const before = app.clock.now() - app.config.upload_ttl_seconds * 1000 - DAY_MS;
  let swept = 0;
  for await (const { key, uploadId, startedAt } of objects.listMultiparts(TENANTS)) {
    // Those of a batch upload live as long as its lease, and are deleted with it.
    if (startedAt.getTime() > before || ownerOf(key)?.area === "ingest") continue;
    await objects.abortMultipart(key, uploadId);
    swept++;
  }
  return swept;
}
