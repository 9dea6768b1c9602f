import type * as v from "valibot";
import type { App } from "#app.ts";
import { invalid } from "#lib/base";
import { attemptPrefix } from "#model/object-keys.ts";
import { storageOf } from "#platform/http/storage.ts";
import type { SignArtifacts } from "#protocol/worker.ts";
import { isOfPart } from "./join-contract.ts";
import type { Leased } from "./lease.ts";
import { nameOfLease, urlLease } from "./lease-urls.ts";

/** A presigned URL for artifacts is valid as long as an encode may take, and ends with the lease. */
const ARTIFACT_TTL_MS = 24 * 3_600_000;
const MAX_ARTIFACT_BYTES = 64 * 2 ** 30;

/**
 * Presigned URLs to write or read an attempt's results, and to read the media that it joins. Throws 422 for other keys.
 */
export async function signArtifacts(
  app: App,
  { job, attempt, lease }: Leased & { lease?: { id: number } },
  { paths, method: wanted }: v.InferOutput<typeof SignArtifacts>,
) {
  const prefix = attemptPrefix(job, attempt.id);
  const objects = storageOf(app);
  const expiresAt = new Date(app.clock.now() + ARTIFACT_TTL_MS);
  const urls = { expiresAt, lease: urlLease(app, nameOfLease({ attempt, ...(lease && { lease }) })) };
  return Promise.all(
    paths.map(async (path, index) => {
      const isReadable = wanted === "GET" && job.joined?.some((part) => isOfPart(part, path));
      if (
        !(path.startsWith(prefix) || isReadable) ||
        path.split("/").some((part) => part === "" || part === "." || part === "..")
      ) {
        invalid(`paths.${index}`, `must be under ${prefix}`);
      }
      const { url, method, headers } =
        wanted === "GET"
          ? await objects.signGet(path, urls)
          : await objects.signPut(path, { ...urls, maxBytes: MAX_ARTIFACT_BYTES });
      return { path, url, method, headers };
    }),
  );
}
