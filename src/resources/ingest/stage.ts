import type { BatchRow } from "../../../storage/db/schema.ts";
import { deletePrefix } from "../../../storage/objects/delete-prefix.ts";
import type { App } from "../../app.ts";
import { registerPending } from "../../http/object-gc.ts";
import { storageOf } from "../../http/storage.ts";
import { HttpError } from "../../lib/errors.ts";
import { randomName } from "../../lib/tokens.ts";
import { deliveredPrefix } from "../assets/change.ts";
import { type StoredText, storeTextUnder } from "../subtitles/store.ts";
import { type CheckedAsset, subtitleText } from "./check.ts";
import type { Inventory } from "./inventory.ts";
import { prefixOf } from "./queries.ts";

const AT_ONCE = 16;
/** Longer than copying a batch may take. */
const NAMED_WITHIN_MS = 12 * 3_600_000;

export type Staged = CheckedAsset & {
  /** Where its media lie from now on. */
  prefix: string;
  sourceKey: string | null;
  mediaBytes: number;
  texts: StoredText[];
};

/**
 * Copies what each asset needs to a place of its own: assets that share a file can then be deleted one by one, none
 * serves another's, and late writes to the batch reach no asset. A local store makes second names for the same bytes.
 */
export async function stage(
  app: App,
  batch: BatchRow,
  { checked, held, signal }: { checked: readonly CheckedAsset[]; held: Inventory; signal?: AbortSignal | undefined },
): Promise<Staged[]> {
  const objects = storageOf(app);
  const parsing = { tenantId: batch.tenantId, signal };
  const places = checked.map((asset): Staged => {
    const source = asset.given.source_key ?? null;
    return {
      ...asset,
      prefix: deliveredPrefix(batch.tenantId),
      sourceKey: source && `tenants/${batch.tenantId}/sources/${randomName(24)}${extensionOf(source)}`,
      mediaBytes: [...asset.needed.values()].reduce((sum, bytes) => sum + bytes, 0),
      texts: [],
    };
  });
  await registerPending(
    app,
    places.flatMap(({ prefix, sourceKey }) => (sourceKey ? [prefix, sourceKey] : [prefix])),
    NAMED_WITHIN_MS,
  );
  try {
    const copy = async (from: string, to: string, bytes: number) => {
      const source = prefixOf(batch) + from;
      // Looked at only where that fails: on S3 it would be as many requests again.
      const info = await objects.copy(source, to).catch(async (error) => {
        if (await objects.head(source)) throw error;
        return null;
      });
      if (info?.bytes !== bytes)
        throw new HttpError(409, "batch_conflict", `${from} changed while it was committed; try again.`);
    };
    for (const place of places) {
      const { given, prefix, sourceKey, sourceBytes, needed, texts } = place;
      await eachOf(needed, ([key, bytes]) => copy(key, prefix + key, bytes));
      if (sourceKey && given.source_key) await copy(given.source_key, sourceKey, sourceBytes);
      for (const { path } of given.subtitles)
        texts.push(await storeTextUnder(app, prefix, await subtitleText(app, held, path, parsing)));
    }
    return places;
  } catch (error) {
    await removeStaged(app, places);
    throw error;
  }
}

/** Each of `items`, a few at once; ends at the first failure, once what is under way has ended. */
async function eachOf<T>(items: Iterable<T>, work: (item: T) => Promise<void>): Promise<void> {
  const rest = items[Symbol.iterator]();
  let failure: { error: unknown } | null = null;
  const worker = async () => {
    for (let next = rest.next(); !next.done && !failure; next = rest.next()) {
      try {
        await work(next.value);
      } catch (error) {
        failure ??= { error };
      }
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, worker));
  if (failure) throw (failure as { error: unknown }).error;
}

/** What no asset came of. It stands among what is unwanted too, should this fail. */
export async function removeStaged(app: App, staged: readonly Staged[]): Promise<void> {
  const objects = storageOf(app);
  try {
    for (const { prefix, sourceKey } of staged) {
      await deletePrefix(objects, prefix);
      if (sourceKey !== null) await objects.delete(sourceKey);
    }
  } catch (error) {
    app.log.warn({ err: error }, "copies for a commit that failed could not all be removed yet");
  }
}

const extensionOf = (name: string) => /\.[A-Za-z0-9]{1,8}$/.exec(name)?.[0].toLowerCase() ?? "";
