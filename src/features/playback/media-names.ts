import type { App } from "#app.ts";
import { notFound } from "#lib/base";
import { folderOf, isPlainPath, lastFolderOf, pathBelow, splitFirst, urlPathOf } from "#model/object-keys.ts";
import type { Rebased } from "#platform/parsing/parsers.ts";
import type { AssetRow } from "#storage/db/schema.ts";
import { posterOf } from "../assets/poster.ts";
import { replacedMediaOf } from "../assets/replaced-media.ts";
import { type Media, mediaKey } from "../assets/shared-media.ts";

/** A file with a fixed name: its object, and `what` of a manifest is written for each request. */
export type Top = { key: string; folder: string; what?: Rebased };

/** Resolves a fixed name. `folder` is the last part of the published prefix, followed by the path below it. */
export function topFile(asset: AssetRow, file: string): Top | null {
  const known = {
    "master.m3u8": [asset.manifestPath, "master"],
    "manifest.mpd": [asset.dashManifestPath, "mpd"],
    "storyboard.vtt": [asset.storyboardPath, "storyboard"],
    "thumbnail.jpg": [posterOf(asset), undefined],
    "video.mp4": [asset.mp4Path, undefined],
  } as const;
  if (!Object.hasOwn(known, file)) return null;
  const [key, what] = known[file as keyof typeof known];
  if (!key) return notFound("file");
  const prefix = asset.mediaPrefix as string;
  return {
    key,
    // It becomes part of a URL; clients choose the names of their own directories.
    folder: `${lastFolderOf(prefix)}/${urlPathOf(folderOf(pathBelow(prefix, key) ?? ""))}`,
    ...(what && { what }),
  };
}

/** A file of the published media, or of those that they have replaced less than an hour ago. */
export async function versionedKey(
  app: App,
  asset: AssetRow,
  file: string,
): Promise<{ key: string; path: string; media: Media & { mediaPrefix: string } }> {
  const prefix = asset.mediaPrefix as string;
  const { folder: version, path } = splitFirst(file) ?? notFound("file");
  if (!isPlainPath(path)) notFound("file");
  if (version === lastFolderOf(prefix))
    return { key: mediaKey(asset, path), path, media: { ...asset, mediaPrefix: prefix } };
  const media =
    (await replacedMediaOf(app, asset.id)).find((one) => lastFolderOf(one.mediaPrefix) === version) ?? notFound("file");
  return { key: mediaKey(media, path), path, media };
}
