import type { AssetRow } from "../../../storage/db/schema.ts";
import { contentTypeOf } from "../../lib/media-types.ts";

/** What a token is for, in the words of Mux: `v` opens all of an asset; a thumbnail, a storyboard, an animated picture. */
export type Audience = "v" | "t" | "s" | "g";
const PICTURES: Record<string, Audience> = { thumbnail: "t", storyboard: "s", animated: "g" };

/** Any of them opens `file`, as it stands below `/media/<asset>/`. */
export function audiencesOf(asset: AssetRow, file: string): readonly Audience[] {
  const own = /^([a-z]+)\.[a-z0-9]+$/.exec(file)?.[1];
  const picture = own !== undefined && Object.hasOwn(PICTURES, own) ? PICTURES[own] : belowVersion(asset, file);
  return picture === undefined ? ["v"] : ["v", picture];
}

/** The storyboard names its sheets by their lasting addresses. */
function belowVersion({ mediaPrefix, thumbnailPath, storyboardPath }: AssetRow, file: string): Audience | undefined {
  const slash = file.indexOf("/");
  if (mediaPrefix === null || slash === -1) return undefined;
  const key = mediaPrefix + file.slice(slash + 1);
  if (key === thumbnailPath) return "t";
  if (storyboardPath === null) return undefined;
  const isSheet =
    key.startsWith(storyboardPath.slice(0, storyboardPath.lastIndexOf("/") + 1)) &&
    contentTypeOf(key).startsWith("image/");
  return key === storyboardPath || isSheet ? "s" : undefined;
}
