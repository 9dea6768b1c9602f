import type * as v from "valibot";
import type { App } from "#app.ts";
import { invalid } from "#lib/base";
import { attemptPrefix, isBelow, isPlainPath } from "#model/object-keys.ts";
import { storageOf } from "#platform/http/storage.ts";
import type { SignArtifacts } from "#protocol/worker.ts";
import { isOfPart } from "./join-contract.ts";
import { type LeaseName, nameOfLease, signedFor } from "./lease-urls.ts";
import type { LeasedTask } from "./tasks/lease.ts";

const MAX_ARTIFACT_BYTES = 64 * 2 ** 30;

type Wanted = v.InferOutput<typeof SignArtifacts>;
type Limits = {
  /** Whether the lease permits the key, which is that of an object, to be read or written. */
  isAllowed(path: string, isRead: boolean): boolean;
  /** What the 422 for any other key says: `must be …`. */
  expected(isRead: boolean): string;
  /** The largest object that may be written. */
  maxBytes(path: string): number;
};

/** Presigned URLs to write or read objects while a lease lasts. Throws 422 for a key that the lease does not permit. */
export async function signFor(app: App, lease: LeaseName, { paths, method }: Wanted, limits: Limits) {
  const objects = storageOf(app);
  const urls = signedFor(app, lease);
  const isRead = method === "GET";
  return Promise.all(
    paths.map(async (path, index) => {
      if (!isPlainPath(path) || !limits.isAllowed(path, isRead)) invalid(`paths.${index}`, limits.expected(isRead));
      const signed = isRead
        ? await objects.signGet(path, urls)
        : await objects.signPut(path, { ...urls, maxBytes: limits.maxBytes(path) });
      return { path, url: signed.url, method: signed.method, headers: signed.headers };
    }),
  );
}

/**
 * Presigned URLs to write or read an attempt's results, and to read the media that it joins. Throws 422 for other keys.
 */
export function signArtifacts(app: App, { job, task, attempt }: LeasedTask, wanted: Wanted) {
  const prefix = attemptPrefix(job, attempt.id);
  return signFor(app, nameOfLease(task), wanted, {
    isAllowed: (path, isRead) =>
      isBelow(prefix, path) || (isRead && (job.joined ?? []).some((part) => isOfPart(part, path))),
    expected: () => `must be under ${prefix}`,
    maxBytes: () => MAX_ARTIFACT_BYTES,
  });
}
