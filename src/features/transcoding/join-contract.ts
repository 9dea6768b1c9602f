import { isShared } from "#lib/manifests";
import { directoryOf, isBelow, ownPath } from "#model/object-keys.ts";
import type { Join } from "#protocol/join.ts";
import type { JoinedPart } from "#storage/db/schema.ts";

/** The part of a contract that describes the media to join. `localPath` is null for a worker on another disk. */
export function joinContract(parts: readonly JoinedPart[], localPath: (key: string) => string | null): Join {
  const folder = (prefix: string) => localPath(directoryOf(prefix));
  return {
    parts: parts.map(({ assetId, prefix, manifestPath, sharedPrefix, sharedMedia }) => ({
      asset_id: assetId,
      prefix,
      manifest_path: manifestPath,
      local_path: folder(prefix),
      shared:
        sharedPrefix === null || sharedMedia === null
          ? null
          : {
              prefix: sharedPrefix,
              local_path: folder(sharedPrefix),
              segments: sharedMedia.segments,
              objects: sharedMedia.objects,
            },
    })),
  };
}

/** Whether a job that joins a part may read the object. */
export const isOfPart = ({ prefix, sharedPrefix, sharedMedia }: JoinedPart, key: string): boolean =>
  isBelow(prefix, key) ||
  (sharedPrefix !== null &&
    sharedMedia !== null &&
    isBelow(sharedPrefix, key) &&
    isShared(sharedMedia, ownPath(sharedPrefix, key)));
