import { folderOf, pathBelow } from "#model/object-keys.ts";
import type { AssetRow, RenditionRow } from "#storage/db/schema.ts";

/** The reference of a rendition in the master playlist of its asset; null when its playlist is not below that. */
export function variantReference(
  { manifestPath }: Pick<AssetRow, "manifestPath">,
  { playlist_path: path }: Pick<RenditionRow, "playlist_path">,
): string | null {
  const folder = folderOf(manifestPath ?? "");
  return folder === "" ? null : pathBelow(folder, path);
}

/** The URL of a master playlist that has only this rendition, with its audio; `hlsUrl` is that of all. */
export function renditionUrl(hlsUrl: string, name: string): string {
  const url = new URL(hlsUrl);
  url.searchParams.set("rendition", name);
  return url.href;
}
