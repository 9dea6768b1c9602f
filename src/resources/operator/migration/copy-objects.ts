import { createHash } from "node:crypto";
import type { ObjectInfo, ObjectStore } from "../../../../storage/objects/store.ts";
import type { StorePair } from "../../../../storage/objects/store-pair.ts";
import { contentTypeOf } from "../../../lib/media-types.ts";

/** All objects of vodbox lie there; what else is in a bucket is none of ours. */
const PREFIX = "tenants/";
const PAGE = 200;
const AT_ONCE = 4;

export type ListedPair = { object: ObjectInfo; twin: ObjectInfo | undefined };
export type Page = { seen: ListedPair[]; last: string | null };

/** The objects of `store` after `after`, in key order, each with the object of `other` under the same key; one page at a time. */
export async function* joinedListing(store: ObjectStore, other: ObjectStore, after: string): AsyncGenerator<Page> {
  for (let cursor: string | null = cursorOf(after); cursor !== null; ) {
    const page = await store.list(PREFIX, { limit: PAGE, ...(cursor && { cursor }) });
    const last = page.objects.at(-1)?.key ?? null;
    const twins = last === null ? new Map<string, ObjectInfo>() : await between(other, cursor, last);
    yield { seen: page.objects.map((object) => ({ object, twin: twins.get(object.key) })), last };
    cursor = page.cursor;
  }
}

async function between(store: ObjectStore, after: string, last: string): Promise<Map<string, ObjectInfo>> {
  const found = new Map<string, ObjectInfo>();
  const end = Buffer.from(last);
  for (let cursor: string | null = after; cursor !== null; ) {
    const page = await store.list(PREFIX, { limit: PAGE, ...(cursor && { cursor }) });
    for (const object of page.objects) {
      if (Buffer.compare(Buffer.from(object.key), end) > 0) return found;
      found.set(object.key, object);
    }
    cursor = page.cursor;
  }
  return found;
}

const cursorOf = (key: string) => (key === "" ? "" : Buffer.from(key).toString("base64url"));

/** `work` for all of `items`, some at once; after a failure the others end what they are at. */
export async function runBounded<T>(items: readonly T[], work: (item: T) => Promise<void>): Promise<void> {
  const waiting = [...items];
  const next = async () => {
    try {
      for (let item = waiting.shift(); item !== undefined; item = waiting.shift()) await work(item);
    } catch (error) {
      waiting.length = 0;
      throw error;
    }
  };
  const results = await Promise.allSettled(Array.from({ length: AT_ONCE }, next));
  const failed = results.find((result) => result.status === "rejected");
  if (failed) throw failed.reason;
}

export const copyObject = ({ carry: one }: StorePair, key: string, signal: AbortSignal) =>
  one(key, { contentType: contentTypeOf(key), signal });

/** Whether both hold the same bytes, all of them read; an object that the source has lost meanwhile is no difference. */
export async function isSame({ source, target }: StorePair, key: string, signal: AbortSignal): Promise<boolean> {
  const [ours, theirs] = await Promise.all([digestOf(source, key, signal), digestOf(target, key, signal)]);
  return ours === theirs || (ours === null && (await source.head(key)) === null);
}

async function digestOf(store: ObjectStore, key: string, signal: AbortSignal): Promise<string | null> {
  const found = await store.get(key);
  if (!found) return null;
  const hash = createHash("sha256");
  const { body } = found;
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
