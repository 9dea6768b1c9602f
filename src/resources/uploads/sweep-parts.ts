import type { App } from "../../app.ts";
import { uploadOfKey } from "./queries.ts";

const DAY_MS = 86_400_000;

/** What grew on this machine's disk for uploads that are over: their ends remove it, and this what a crash kept them from. */
export async function sweepAppends(app: App): Promise<number> {
  const isWanted = async (key: string) => (await uploadOfKey(app.db, key))?.status === "pending";
  return (await app.objects?.appends?.sweep(isWanted)) ?? 0;
}

/**
 * Uploads in parts that nobody will complete: of sessions that are over, and of puts that died with their process.
 * A day after the longest session, so that whoever is slow to end one does it himself. Answers how many there were.
 */
export async function sweepParts(app: App): Promise<number> {
  const { objects } = app;
  if (!objects) return 0;
  const before = app.clock.now() - app.config.upload_ttl_seconds * 1000 - DAY_MS;
  let swept = 0;
  for await (const { key, uploadId, startedAt } of objects.listMultiparts("tenants/")) {
    // Those of an ingest batch live as long as its lease, and go with it.
    if (startedAt.getTime() > before || /^tenants\/\d+\/ingest\//.test(key)) continue;
    await objects.abortMultipart(key, uploadId);
    swept++;
  }
  return swept;
}
