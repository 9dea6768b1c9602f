import type { ObjectStore } from "./store.ts";
import type { StorePair } from "./store-pair.ts";

/** The active store, which can be exchanged while the program runs. */
export type SwitchingStore = ObjectStore & {
  /** The two stores of a migration in progress. */
  readonly pair: StorePair | null;
  /** All later calls use `store`; calls in progress end in the previous one. */
  use(store: ObjectStore, pair?: StorePair | null): void;
  /** Resolves when deletions that began before the last `use` have ended. */
  deletionsOver(): Promise<void>;
  /** Resolves when puts that began before the last `use` have ended. */
  isQuiet(): boolean;
};

export function switchingStore(first: ObjectStore, firstPair: StorePair | null = null): SwitchingStore {
  let store = first;
  let pair = firstPair;
  let writes = new Set<Promise<unknown>>();
  let deletions = new Set<Promise<unknown>>();
  let earlierWrites: Set<Promise<unknown>>[] = [];
  let earlierDeletions: Promise<unknown>[] = [];
  const among = <T>(running: Set<Promise<unknown>>, work: Promise<T>): Promise<T> => {
    running.add(work);
    const over = () => running.delete(work);
    work.then(over, over);
    return work;
  };
  return {
    get kind() {
      return store.kind;
    },
    get addressOrigin() {
      return store.addressOrigin;
    },
    get clock() {
      return store.clock;
    },
    get recognizesUploads() {
      return store.recognizesUploads;
    },
    get appends() {
      return store.appends;
    },
    get pair() {
      return pair;
    },
    use(next, nextPair = null) {
      store = next;
      pair = nextPair;
      earlierWrites = [...earlierWrites, writes].filter((running) => running.size > 0);
      earlierDeletions = [...deletions];
      writes = new Set();
      deletions = new Set();
    },
    deletionsOver: async () => void (await Promise.allSettled(earlierDeletions)),
    isQuiet: () => earlierWrites.every((running) => running.size === 0),
    put: (...all) => among(writes, store.put(...all)),
    putFile: (...all) => among(writes, store.putFile(...all)),
    get: (...all) => store.get(...all),
    head: (key) => store.head(key),
    list: (...all) => store.list(...all),
    delete: (key) => among(deletions, store.delete(key)),
    copy: (from, to) => among(writes, store.copy(from, to)),
    signPut: (...all) => store.signPut(...all),
    signGet: (...all) => store.signGet(...all),
    createMultipart: (...all) => store.createMultipart(...all),
    signPart: (...all) => store.signPart(...all),
    putPart: (...all) => store.putPart(...all),
    listParts: (...all) => store.listParts(...all),
    completeMultipart: (...all) => among(writes, store.completeMultipart(...all)),
    abortMultipart: (...all) => store.abortMultipart(...all),
    listMultiparts: (prefix) => store.listMultiparts(prefix),
    localPath: (key) => store.localPath(key),
    check: () => store.check(),
    examine: (options) => store.examine(options),
  };
}
