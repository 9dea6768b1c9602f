import type { App } from "#app.ts";
import { HttpError, mapBounded } from "#lib/base";
import { batchPrefix, newDeliveredPrefix, newSourceKey } from "#model/object-keys.ts";
import { registerPending } from "#platform/http/object-gc.ts";
import { storageOf } from "#platform/http/storage.ts";
import type { BatchRow } from "#storage/db/schema.ts";
import { deletePrefix } from "#storage/objects/delete-prefix.ts";
import { type StoredText, storeTextUnder } from "../subtitles/store.ts";
import { type CheckedAsset, subtitleText } from "./check.ts";
import type { Inventory } from "./inventory.ts";

const AT_ONCE = 16;
/** Longer than copying a batch takes. */
const NAMED_WITHIN_MS = 12 * 3_600_000;

export type Staged = CheckedAsset & {
  /** The prefix of its media from now on. */
  prefix: string;
  sourceKey: string | null;
  mediaBytes: number;
  texts: StoredText[];
};

/**
 * Copies the objects of each asset to its own prefix: assets that share a file can then be deleted independently, no
 * asset serves another's file, and late writes to the batch reach no asset. A local store creates hard links.
 */
export async function stage(
  app: App,
  batch: BatchRow,
  { checked, held, signal }: { checked: readonly CheckedAsset[]; held: Inventory; signal?: AbortSignal | undefined },
): Promise<Staged[]> {
  const objects = storageOf(app);
  const parsing = { tenantId: batch.tenantId, signal };
  const stagedAssets = checked.map((asset): Staged => {
    const source = asset.given.source_key ?? null;
    return {
      ...asset,
      prefix: newDeliveredPrefix(batch.tenantId),
      sourceKey: source && newSourceKey(batch.tenantId, source),
      mediaBytes: [...asset.needed.values()].reduce((sum, bytes) => sum + bytes, 0),
      texts: [],
    };
  });
  await registerPending(
    app,
    stagedAssets.flatMap(({ prefix, sourceKey }) => (sourceKey ? [prefix, sourceKey] : [prefix])),
    NAMED_WITHIN_MS,
  );
  try {
    const copy = async (from: string, to: string, bytes: number) => {
      const source = batchPrefix(batch) + from;
      // Checked only after a failure: on S3 it would double the number of requests.
      const info = await objects.copy(source, to).catch(async (error) => {
        if (await objects.head(source)) throw error;
        return null;
      });
      if (info?.bytes !== bytes)
        throw new HttpError(409, "batch_conflict", `${from} changed during the commit; try again.`);
    };
    for (const staged of stagedAssets) {
      const { given, prefix, sourceKey, sourceBytes, needed, texts } = staged;
      await mapBounded(needed, { atOnce: AT_ONCE }, ([key, bytes]) => copy(key, prefix + key, bytes));
      if (sourceKey && given.source_key) await copy(given.source_key, sourceKey, sourceBytes);
      for (const { path } of given.subtitles)
        texts.push(await storeTextUnder(app, prefix, await subtitleText(app, held, path, parsing)));
    }
    return stagedAssets;
  } catch (error) {
    await removeStaged(app, stagedAssets);
    throw error;
  }
}

/** Deletes prefixes without an asset. They are also registered as garbage, in case this fails. */
export async function removeStaged(app: App, staged: readonly Staged[]): Promise<void> {
  const objects = storageOf(app);
  try {
    for (const { prefix, sourceKey } of staged) {
      await deletePrefix(objects, prefix);
      if (sourceKey !== null) await objects.delete(sourceKey);
    }
  } catch (error) {
    app.log.warn({ err: error }, "some copies of a failed commit could not be deleted yet");
  }
}
