import { compareKeys } from "./keys.ts";
import { type Appends, type ListPage, NoSuchMultipart, type ObjectStore } from "./store.ts";
import type { StorePair } from "./store-pair.ts";

const PAGE_OBJECTS = 1000;

/**
 * Two stores as one, after the switch and until the target has all objects of the source. New objects go to the target.
 * When both have a key the source's object counts: a put deletes it from the source, so it is the newest one, and an
 * object that was in the target before is never served. Uploads and jobs that began with URLs of the source end there.
 */
export function layered(pair: StorePair): ObjectStore {
  const { source, target } = pair;
  const isIn = async (store: ObjectStore, key: string) => (await store.head(key)) !== null;

  /** The store of a multipart upload: the answer of one store decides. */
  async function ownerOf(key: string, uploadId: string): Promise<ObjectStore> {
    const [asked, other] = source.recognizesUploads ? [source, target] : [target, source];
    try {
      // A list of thousands of parts takes longer, and a request where the store is on a server.
      if (asked.recognizesUploads) await asked.signPart(key, uploadId, 1, { expiresAt: new Date(), maxBytes: 0 });
      else await asked.listParts(key, uploadId);
      return asked;
    } catch (error) {
      if (error instanceof NoSuchMultipart) return other;
      throw error;
    }
  }

  /** `work` creates an object in `store`. */
  const arriving = <T>(store: ObjectStore, key: string, work: () => Promise<T>): Promise<T> =>
    store === source
      ? work()
      : pair.instead(key, async () => {
          const created = await work();
          await source.delete(key);
          return created;
        });

  const store: ObjectStore = {
    kind: target.kind,
    addressOrigin: target.addressOrigin,
    clock: target.clock,
    recognizesUploads: source.recognizesUploads && target.recognizesUploads,
    appends: layeredAppends(pair, arriving),
    put: (key, body, options) => {
      // It may fail before a listener is attached.
      if (!(body instanceof Uint8Array)) body.on("error", () => {});
      return arriving(target, key, () => target.put(key, body, options));
    },
    putFile: (key, path, options) => arriving(target, key, () => target.putFile(key, path, options)),
    get: async (key, range) => (await source.get(key, range)) ?? target.get(key, range),
    head: async (key) => (await source.head(key)) ?? target.head(key),

    async list(prefix, { limit = PAGE_OBJECTS, cursor } = {}): Promise<ListPage> {
      const options = { limit, ...(cursor && { cursor }) };
      const [first, second] = await Promise.all([source.list(prefix, options), target.list(prefix, options)]);
      // After the end of the shorter of two truncated lists, the other may have more.
      const ends = [first, second].flatMap(({ cursor: end }) => (end === null ? [] : [keyOf(end)])).sort(compareKeys);
      const end = ends[0];
      const byKey = new Map([...second.objects, ...first.objects].map((object) => [object.key, object]));
      const merged = [...byKey.values()]
        .filter(({ key }) => end === undefined || compareKeys(key, end) <= 0)
        .sort((a, b) => compareKeys(a.key, b.key));
      const last = merged.length > limit ? merged[limit - 1]?.key : end;
      return { objects: merged.slice(0, limit), cursor: last === undefined ? null : cursorOf(last) };
    },

    delete: (key) =>
      pair.instead(key, async () => {
        await source.delete(key);
        await target.delete(key);
      }),

    async copy(from, to) {
      const object = await store.get(from);
      if (!object) throw new Error(`The object to copy does not exist: ${from}.`);
      return store.put(to, object.body);
    },

    // The bytes of an upload that began in the source are there, and its client may still have the URL.
    signPut: async (key, options) => ((await isIn(source, key)) ? source : target).signPut(key, options),
    signGet: async (key, options) => ((await isIn(source, key)) ? source : target).signGet(key, options),

    createMultipart: (key, options) => target.createMultipart(key, options),
    signPart: async (key, uploadId, ...rest) => (await ownerOf(key, uploadId)).signPart(key, uploadId, ...rest),
    async putPart(key, uploadId, partNumber, body, options) {
      body.on("error", () => {});
      return (await ownerOf(key, uploadId)).putPart(key, uploadId, partNumber, body, options);
    },
    listParts: async (key, uploadId) => (await ownerOf(key, uploadId)).listParts(key, uploadId),
    async completeMultipart(key, uploadId, parts) {
      const owner = await ownerOf(key, uploadId);
      return arriving(owner, key, () => owner.completeMultipart(key, uploadId, parts));
    },
    abortMultipart: async (key, uploadId) => (await ownerOf(key, uploadId)).abortMultipart(key, uploadId),
    async *listMultiparts(prefix) {
      yield* source.listMultiparts(prefix);
      yield* target.listMultiparts(prefix);
    },

    // A path would have to name now the store in which the object will be when it is opened.
    localPath: () => null,
    async check() {
      await source.check();
      await target.check();
    },
    examine: (options) => target.examine(options),
  };
  return store;
}

type Arriving = <T>(store: ObjectStore, key: string, work: () => Promise<T>) => Promise<T>;

/** An append that began in the source continues there. */
function layeredAppends({ source, target }: StorePair, arriving: Arriving): Appends {
  const ways = (store: ObjectStore): Appends => {
    if (!store.appends) throw new Error(`${store.kind} storage cannot append.`);
    return store.appends;
  };
  const ownerOf = async (key: string) => ((await ways(source).held(key)) === null ? target : source);
  return {
    held: async (key) => ways(await ownerOf(key)).held(key),
    settled: async (key) => ways(await ownerOf(key)).settled(key),
    async append(key, body, options) {
      body.on("error", () => {});
      return ways(await ownerOf(key)).append(key, body, options);
    },
    async finish(key, bytes, options) {
      const owner = await ownerOf(key);
      return arriving(owner, key, () => ways(owner).finish(key, bytes, options));
    },
    sweep: async (isWanted) => (await ways(source).sweep(isWanted)) + (await ways(target).sweep(isWanted)),
    async discard(key) {
      await ways(source).discard(key);
      await ways(target).discard(key);
    },
  };
}

/** Both stores' cursors are the last key of the page. */
const keyOf = (cursor: string) => Buffer.from(cursor, "base64url").toString();
const cursorOf = (key: string) => Buffer.from(key).toString("base64url");
