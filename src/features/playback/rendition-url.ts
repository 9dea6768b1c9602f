import type { AssetRow, RenditionRow } from "#storage/db/schema.ts";

/** The reference of a rendition in the master playlist of its asset; null when its playlist is not below that. */
export function variantReference(
  { manifestPath }: Pick<AssetRow, "manifestPath">,
  { playlist_path: path }: Pick<RenditionRow, "playlist_path">,
): string | null {
  const folder = manifestPath?.slice(0, manifestPath.lastIndexOf("/") + 1);
  return folder && path.startsWith(folder) ? path.slice(folder.length) : null;
}

/** The URL of a master playlist that has only this rendition, with its audio; `hlsUrl` is that of all. */
export function renditionUrl(hlsUrl: string, name: string): string {
  const url = new URL(hlsUrl);
  url.searchParams.set("rendition", name);
  return url.href;
}
