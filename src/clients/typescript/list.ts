/** A page of a list, and where the next one begins. */
export type Page<T> = { items: T[]; cursor: string | null };

/** Where a page begins, by the `cursor` of the page before it, and how many items it has at most. */
export type PageStart = { cursor?: string | undefined; limit?: number };

/**
 * A list that is not loaded yet. `await` returns one page; `for await` loads one page after the other, and yields every
 * item. Nothing is requested before.
 */
export class List<T> implements Promise<T[]>, AsyncIterable<T> {
  readonly #loadFirst: () => Promise<T[]>;
  readonly #load: (at?: PageStart) => Promise<Page<T>>;
  #first: Promise<T[]> | undefined;

  /** `first` is the page that `await` returns; `load` is what an iteration reads. */
  constructor(first: () => Promise<T[]>, load: (at?: PageStart) => Promise<Page<T>>) {
    this.#loadFirst = first;
    this.#load = load;
  }

  /** One page, with the cursor of the next one. */
  page(at: PageStart = {}): Promise<Page<T>> {
    return this.#load(at);
  }

  // biome-ignore lint/suspicious/noThenProperty: a list is awaited for its first page.
  then<A = T[], B = never>(
    onValue?: ((value: T[]) => A | PromiseLike<A>) | null,
    onError?: ((reason: unknown) => B | PromiseLike<B>) | null,
  ): Promise<A | B> {
    this.#first ??= this.#loadFirst();
    return this.#first.then(onValue, onError);
  }

  catch<B = never>(onError?: ((reason: unknown) => B | PromiseLike<B>) | null): Promise<T[] | B> {
    return this.then(null, onError);
  }

  finally(onEnd?: (() => void) | null): Promise<T[]> {
    return this.then().finally(onEnd);
  }

  get [Symbol.toStringTag](): string {
    return "List";
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<T, void, undefined> {
    let cursor: string | undefined;
    do {
      const page = await this.#load({ cursor });
      yield* page.items;
      cursor = page.cursor ?? undefined;
    } while (cursor !== undefined);
  }
}

/** The cursor in a Link header (RFC 8288). Its host is not used: behind a proxy it may not be the one that was called. */
export function nextCursor(link: string | null): string | null {
  const next = /<([^<>]+)>; rel="next"/.exec(link ?? "")?.[1];
  return next === undefined ? null : new URL(next, "http://localhost").searchParams.get("cursor");
}
