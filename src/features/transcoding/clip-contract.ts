import { type NumberedFiles, pathOf } from "#lib/manifests";
import { ownPath } from "#model/object-keys.ts";
import type { Clip } from "#protocol/clip.ts";
import type { AssetRow, ClipJob } from "#storage/db/schema.ts";
import { listAll } from "#storage/objects/list-all.ts";
import type { ObjectStore } from "#storage/objects/store.ts";

/** A short segment is joined with the next one, and audio may have a segment too many. */
const AT_EACH_END = 3;
/** What a worker does not read. */
const IMAGE = /\.(jpe?g|png|webp)$/i;

type Access = { expiresAt: Date; lease: string | undefined; localPath(key: string): string | null };

/** The part of a contract that describes an exact clip, with URLs of all objects that are needed for it. */
export async function clipContract(
  objects: ObjectStore,
  asset: Pick<AssetRow, "sharedPrefix" | "sharedMedia">,
  clip: ClipJob,
  { expiresAt, lease, localPath }: Access,
): Promise<Clip> {
  const keys = new Map<string, { key: string; is_shared: boolean }>();
  const { sharedPrefix, sharedMedia } = clip.trim ?? asset;
  const shared = [...(sharedMedia?.segments.flatMap(endsOf) ?? []), ...(sharedMedia?.objects ?? [])];
  for (const path of shared) if (!IMAGE.test(path)) keys.set(path, { key: `${sharedPrefix}${path}`, is_shared: true });
  for await (const { key } of listAll(objects, clip.prefix))
    keys.set(ownPath(clip.prefix, key), { key, is_shared: false });
  const listed = await Promise.all(
    [...keys].map(async ([path, { key, is_shared }]) => {
      const { url, method, headers } = await objects.signGet(key, { expiresAt, lease });
      return { path, url, method, headers, local_path: localPath(key), is_shared };
    }),
  );
  return {
    manifest_path: clip.manifestPath,
    dash_manifest_path: clip.dashManifestPath,
    storyboard_path: clip.storyboardPath,
    start_seconds: clip.startSeconds,
    duration_seconds: clip.durationSeconds,
    objects: listed,
  };
}

function endsOf(run: NumberedFiles): string[] {
  const { first, last } = run;
  const numbers = Array.from({ length: AT_EACH_END }, (_, index) => [first + index, last - index]).flat();
  return [...new Set(numbers)]
    .filter((number) => number >= first && number <= last)
    .map((number) => pathOf(run, number));
}
