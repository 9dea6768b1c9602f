import type { Span } from "./hls-read.ts";

/** An object that a document needs, once, with the range that ends last. */
export type NeededObject = { path: string; span?: Span };

/**
 * Needed objects by path, as far as a check requires them. With more paths than stored objects some must be missing,
 * and reporting a hundred is enough.
 */
export class NeededObjects<T extends NeededObject = NeededObject> {
  readonly #found = new Map<string, T>();

  /** `key` distinguishes objects that are needed for different reasons. */
  add(needed: T, key = needed.path): void {
    const known = this.#found.get(key);
    if (!known) this.#found.set(key, needed);
    else if (needed.span && (known.span?.end ?? -1) < needed.span.end) known.span = needed.span;
  }

  /** At most twice `stored`, because a path may be needed for two reasons, plus a hundred. */
  list(stored: number): T[] {
    return [...this.#found.values().take(2 * stored + MORE)];
  }
}

/** The number of faults that are reported for an asset. */
const MORE = 100;
