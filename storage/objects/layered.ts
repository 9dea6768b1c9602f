import { compareKeys } from "./keys.ts";
import { type Appends, type ListPage, NoSuchMultipart, type ObjectStore } from "./store.ts";
import type { StorePair } from "./store-pair.ts";

const PAGE_OBJECTS = 1000;

/**
 * Two stores as one, after the switch and until the source holds nothing that the target lacks. What is new goes to the
 * target. Where both hold a key the source's object counts: it is there for as long as nobody put another one, since
 * a put takes it away; so nothing that lay in the target before can ever be served. Uploads and jobs that began with
 * addresses of the source end there.
 */
export function layered(pair: StorePair): ObjectStore {
  const { source, target } = pair;
  const isIn = async (store: ObjectStore, key: string) => (await store.head(key)) !== null;

  /** The one that knows a multipart upload. A local store can say at once whether an id is its own. */
  async function ownerOf(key: string, uploadId: string): Promise<ObjectStore> {
    const [local, remote] = source.kind === "local" ? [source, target] : [target, source];
    try {
      await local.signPart(key, uploadId, 1, { expiresAt: new Date(), maxBytes: 0 });
      return local;
    } catch (error) {
      if (error instanceof NoSuchMultipart) return remote;
      throw error;
    }
  }

  /** `work` makes an object in `store`. */
  const arriving = <T>(store: ObjectStore, key: string, work: () => Promise<T>): Promise<T> =>
    store === source
      ? work()
      : pair.instead(key, async () => {
          const made = await work();
          await source.delete(key);
          return made;
        });

  const store: ObjectStore = {
    kind: target.kind,
    addressOrigin: target.addressOrigin,
    appends: layeredAppends(pair, arriving),
    put: (key, body, options) => {
      // It may fail before anybody listens.
      if (!(body instanceof Uint8Array)) body.on("error", () => {});
      return arriving(target, key, () => target.put(key, body, options));
    },
    get: async (key, range) => (await source.get(key, range)) ?? target.get(key, range),
    head: async (key) => (await source.head(key)) ?? target.head(key),

    async list(prefix, { limit = PAGE_OBJECTS, cursor } = {}): Promise<ListPage> {
      const options = { limit, ...(cursor && { cursor }) };
      const [first, second] = await Promise.all([source.list(prefix, options), target.list(prefix, options)]);
      // Beyond the nearer of two cut lists the other may have more.
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
      const found = await store.get(from);
      if (!found) throw new Error(`There is no object ${from} to copy.`);
      return store.put(to, found.body);
    },

    // Of an upload that began in the source the bytes lie there, and its client may still hold the address.
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

    // A path would have to say now where the object will lie when it is opened.
    localPath: () => null,
    async check() {
      await source.check();
      await target.check();
    },
    serverTime: () => target.serverTime(),
    examine: (options) => target.examine(options),
  };
  return store;
}

type Arriving = <T>(store: ObjectStore, key: string, work: () => Promise<T>) => Promise<T>;

/** What began to grow in the source goes on there. */
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
