import { sha256 } from "#lib/base";
import { imageVersionPrefix } from "#model/object-keys.ts";
import type { AssetRow } from "#storage/db/schema.ts";

type Version = Pick<AssetRow, "tenantId" | "id" | "mediaPrefix" | "thumbnailPath" | "posterPath" | "readyAt">;

/**
 * Prefix of the on-demand images of one version: a re-encode, the completion of an early version, or another poster is a
 * new version, and the images of old ones are deleted.
 */
export const imagesFolder = (asset: Version) =>
  imageVersionPrefix(
    asset,
    sha256(JSON.stringify([asset.mediaPrefix, asset.posterPath ?? asset.thumbnailPath, asset.readyAt])).slice(0, 16),
  );
