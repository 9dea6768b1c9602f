import type * as v from "valibot";
import type { App } from "#app.ts";
import { resolveReference } from "#lib/manifests";
import { isBelow, isPlainPath, pathBelow, TENANTS } from "#model/object-keys.ts";
import type { Completion } from "#protocol/worker.ts";
import { listAll } from "#storage/objects/list-all.ts";
import type { ObjectStore } from "#storage/objects/store.ts";
import { incomplete } from "./captions.ts";
import type { VerifiedResult } from "./lifecycle/results.ts";
import { readMasterPlaylist } from "./read-master-playlist.ts";
import { checkReferences } from "./verify-references.ts";

type Result = v.InferOutput<typeof Completion>;

/**
 * The objects of an attempt in storage. `paths` are those of `checkArtifacts`; the size excludes objects named in
 * `but`.
 */
export async function verifyResult(
  app: App,
  { objects, prefix, tenantId }: { objects: ObjectStore; prefix: string; tenantId: number },
  { paths, result, but = [] }: { paths: VerifiedResult["paths"]; result: Result; but?: readonly string[] },
): Promise<VerifiedResult> {
  const media = await mediaOf(app, objects, { result, tenantId });
  return { paths, bytes: await bytesUnder(objects, prefix, but), media };
}

/** Values that the worker reported; otherwise those of the manifest. */
async function mediaOf(app: App, objects: ObjectStore, { result, tenantId }: { result: Result; tenantId: number }) {
  const { media = {}, manifest_path } = result;
  const { duration_seconds, renditions } = media;
  if (duration_seconds !== undefined && renditions !== undefined) return { ...media, duration_seconds, renditions };
  const published = await readMasterPlaylist(app, objects, { manifestKey: manifest_path as string, tenantId });
  const [top] = published.renditions;
  const display = { width: top?.width, height: top?.height, frame_rate: top?.frame_rate };
  return {
    ...display,
    ...media,
    duration_seconds: duration_seconds ?? published.durationSeconds,
    renditions: renditions ?? published.renditions,
  };
}

/**
 * Checks that all paths are under the attempt's prefix and in storage; throws 422 `invalid_transcoding_result`. The job
 * contract defines the required ones.
 */
export async function checkArtifacts(
  app: App,
  { objects, prefix, tenantId }: { objects: ObjectStore; prefix: string; tenantId: number },
  result: Result,
) {
  checkPlaylistPaths(prefix, result);
  await requireObjects(objects, prefix, {
    manifest_path: result.manifest_path,
    dash_manifest_path: result.dash_manifest_path,
    thumbnail_path: result.thumbnail_path,
  });
  await checkSubtitlePaths(objects, prefix, result);
  const isThere = objectUnder(objects, prefix);
  // Workers without support for these fields may return the contract's outputs unchanged.
  const verifiedPath = async (field: string, path: string | null | undefined) =>
    path && (await isThere(field, path)) ? path : null;
  const paths = {
    mediaPrefix: prefix,
    manifestPath: result.manifest_path as string,
    dashManifestPath: result.dash_manifest_path as string,
    thumbnailPath: result.thumbnail_path as string,
    storyboardPath: await verifiedPath("storyboard_path", result.storyboard_path),
    mp4Path: await verifiedPath("mp4_path", result.mp4_path),
  };
  await checkReferences(app, { objects, prefix, tenantId }, paths);
  return paths;
}

/** Under the prefix, or relative to it as older workers report them. */
function checkPlaylistPaths(prefix: string, { media = {} }: Result): void {
  for (const field of ["renditions", "audio_renditions"] as const)
    for (const [index, { playlist_path: path }] of (media[field] ?? []).entries()) {
      const below = pathBelow(prefix, path) ?? path;
      if ("code" in resolveReference("", below) || isBelow(TENANTS, below))
        incomplete(`media.${field}.${index}.playlist_path`, `must be under ${prefix}`);
    }
}

/** The same for captions. */
export const checkSubtitlePaths = (
  objects: ObjectStore,
  prefix: string,
  { subtitle_paths }: Pick<Result, "subtitle_paths">,
): Promise<void> =>
  requireObjects(
    objects,
    prefix,
    Object.fromEntries(Object.entries(subtitle_paths).map(([language, path]) => [`subtitle_paths.${language}`, path])),
  );

/** Throws 422 for a path that is missing, not under `prefix`, or not in storage. */
export async function requireObjects(
  objects: ObjectStore,
  prefix: string,
  paths: Record<string, string | null | undefined>,
): Promise<void> {
  const isThere = objectUnder(objects, prefix);
  await Promise.all(
    Object.entries(paths).map(async ([field, path]) => {
      if (!path) return incomplete(field, "is required");
      return (await isThere(field, path)) ?? incomplete(field, "does not exist in storage");
    }),
  );
}

const objectUnder = (objects: ObjectStore, prefix: string) => (field: string, path: string) => {
  if (!isBelow(prefix, path) || !isPlainPath(path)) return incomplete(field, `must be under ${prefix}`);
  return objects.head(path);
};

export async function bytesUnder(objects: ObjectStore, prefix: string, but: readonly string[]): Promise<number> {
  let bytes = 0;
  for await (const object of listAll(objects, prefix)) if (!but.includes(object.key)) bytes += object.bytes;
  return bytes;
}
