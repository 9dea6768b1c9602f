import { contentTypeOf } from "#model/media-types.ts";
import { folderOf, isBelow, splitFirst } from "#model/object-keys.ts";
import type { AssetRow } from "#storage/db/schema.ts";

/**
 * The purpose of a token, in Mux's terms: `v` covers all of an asset; the others a thumbnail, a storyboard, an
 * animation.
 */
export type Audience = "v" | "t" | "s" | "g";
/** For a thumbnail. */
export const IMAGE_AUDIENCES: readonly Audience[] = ["v", "t"];
const AUDIENCE_OF_IMAGE: Record<string, Audience> = { thumbnail: "t", storyboard: "s", animated: "g" };

/** Any of these covers `file`, a path below `/media/<asset>/`. */
export function audiencesOf(asset: AssetRow, file: string): readonly Audience[] {
  const own = /^([a-z]+)\.[a-z0-9]+$/.exec(file)?.[1];
  const audience =
    own !== undefined && Object.hasOwn(AUDIENCE_OF_IMAGE, own) ? AUDIENCE_OF_IMAGE[own] : belowVersion(asset, file);
  return audience === undefined ? ["v"] : ["v", audience];
}

/** The storyboard refers to its sheets by permanent URLs. */
function belowVersion({ mediaPrefix, thumbnailPath, storyboardPath }: AssetRow, file: string): Audience | undefined {
  const versioned = splitFirst(file);
  if (mediaPrefix === null || versioned === null) return undefined;
  const key = mediaPrefix + versioned.path;
  if (key === thumbnailPath) return "t";
  if (storyboardPath === null) return undefined;
  const isSheet = isBelow(folderOf(storyboardPath), key) && contentTypeOf(key).startsWith("image/");
  return key === storyboardPath || isSheet ? "s" : undefined;
}
