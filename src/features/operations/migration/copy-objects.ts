import { createHash } from "node:crypto";
import { contentTypeOf } from "#model/media-types.ts";
import { TENANTS } from "#model/object-keys.ts";
import { listPages } from "#storage/objects/list-all.ts";
import type { ObjectInfo, ObjectStore } from "#storage/objects/store.ts";
import type { StorePair } from "#storage/objects/store-pair.ts";

const PAGE = 200;

export type ListedPair = { object: ObjectInfo; twin: ObjectInfo | undefined };
export type Page = { seen: ListedPair[]; last: string | null };

/**
 * The objects of `store` after `after`, in key order, each with the object of `other` under the same key; one page at a
 * time.
 */
export async function* joinedListing(store: ObjectStore, other: ObjectStore, after: string): AsyncGenerator<Page> {
  let from = after;
  for await (const objects of listPages(store, TENANTS, { after, limit: PAGE })) {
    const last = objects.at(-1)?.key ?? null;
    const twins = last === null ? new Map<string, ObjectInfo>() : await between(other, from, last);
    yield { seen: objects.map((object) => ({ object, twin: twins.get(object.key) })), last };
    from = last ?? from;
  }
}

async function between(store: ObjectStore, after: string, last: string): Promise<Map<string, ObjectInfo>> {
  const objects = new Map<string, ObjectInfo>();
  const end = Buffer.from(last);
  for await (const page of listPages(store, TENANTS, { after, limit: PAGE })) {
    for (const object of page) {
      if (Buffer.compare(Buffer.from(object.key), end) > 0) return objects;
      objects.set(object.key, object);
    }
  }
  return objects;
}

export const copyObject = ({ carry: one }: StorePair, key: string, signal: AbortSignal) =>
  one(key, { contentType: contentTypeOf(key), signal });

/** Compares all bytes of both; an object that the source has deleted meanwhile is not a difference. */
export async function isSame({ source, target }: StorePair, key: string, signal: AbortSignal): Promise<boolean> {
  const [sourceDigest, targetDigest] = await Promise.all([
    digestOf(source, key, signal),
    digestOf(target, key, signal),
  ]);
  return sourceDigest === targetDigest || (sourceDigest === null && (await source.head(key)) === null);
}

async function digestOf(store: ObjectStore, key: string, signal: AbortSignal): Promise<string | null> {
  const object = await store.get(key);
  if (!object) return null;
  const hash = createHash("sha256");
  const { body } = object;
  try {
    for await (const chunk of body) {
      signal.throwIfAborted();
      hash.update(chunk as Buffer);
    }
    return hash.digest("hex");
  } finally {
    body.destroy();
  }
}
