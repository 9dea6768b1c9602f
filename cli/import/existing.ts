import type { Asset } from "#features/assets/schema.ts";
import { sha256 } from "#lib/base";
import type { FileSender } from "../push/send.ts";

/** An asset of an earlier run. */
export type Existing = { assetId: number; externalId: string; isUploaded: boolean; bytes: number };

/** Tags of an imported asset, which identify its video at the provider. */
export const PROVIDER_TAG = "source_provider";
export const ID_TAG = "source_id";
/** Longest value of a tag. */
const MAX_TAG = 1024;

/** The value of the tag for an id. A path that no tag can contain is followed by its hash. */
export function tagOf(id: string): string {
  const possible = id.toWellFormed().replaceAll("\0", "\ufffd");
  return possible === id && id.length <= MAX_TAG ? id : `${possible.slice(-MAX_TAG + 65).toWellFormed()}#${sha256(id)}`;
}

/**
 * The assets of the tenant that were imported from a provider, by their tag `source_id`. It prevents duplicates even where
 * the ledger is lost. Of several with the same id, the oldest.
 */
export async function existingAssets(
  { call, patience, tenantId }: FileSender,
  provider: string,
): Promise<Map<string, Existing>> {
  return patience.until(async () => {
    const found = new Map<string, Existing>();
    for await (const page of call.pages<Asset>(
      "/assets",
      tenantId === undefined ? {} : { tenant_id: String(tenantId) },
    ))
      for (const { id, external_id, tags, input_status, source_bytes } of page) {
        if (tags[PROVIDER_TAG] !== provider || typeof tags[ID_TAG] !== "string") continue;
        const isUploaded = input_status === "uploaded";
        if (found.get(tags[ID_TAG])?.isUploaded && !isUploaded) continue;
        found.set(tags[ID_TAG], { assetId: id, externalId: external_id, isUploaded, bytes: source_bytes });
      }
    return found;
  });
}
