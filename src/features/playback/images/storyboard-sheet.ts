import type { App } from "#app.ts";
import { mediaKey } from "#features/assets/shared-media.ts";
import { DOCUMENT_LIMITS, notFound } from "#lib/base";
import { resolveReference } from "#lib/manifests";
import { pathBelow } from "#model/object-keys.ts";
import { parseDocument } from "#platform/parsing/parse-document.ts";
import type { AssetRow } from "#storage/db/schema.ts";
import { readSmallObject } from "#storage/objects/small-objects.ts";
import type { ObjectStore } from "#storage/objects/store.ts";

/** The object with all tiles of the storyboard. Throws 404 where there is none, or several. */
export async function sheetOf(app: App, objects: ObjectStore, asset: AssetRow): Promise<string> {
  const { storyboardPath: key, mediaPrefix: prefix } = asset;
  const path = key !== null && prefix !== null ? pathBelow(prefix, key) : null;
  if (key === null || path === null) return notFound("image");
  const bytes = await readSmallObject(objects, key, { maxBytes: DOCUMENT_LIMITS.servedBytes });
  const text = bytes?.toString("utf8") ?? notFound("image");
  const { images } = await parseDocument(app, "storyboard", { text }, { tenantId: asset.tenantId });
  const [uri, second] = images ?? [];
  if (uri === undefined || second !== undefined) return notFound("image");
  const found = resolveReference(path, uri);
  return "path" in found && found.path !== "" ? mediaKey(asset, found.path) : notFound("image");
}
