import type { Span } from "./hls-read.ts";

/** An object that a document needs, once, with the range of it that ends last. */
export type NeededObject = { path: string; span?: Span };

/**
 * Objects by path, as far as a check needs them. Of more paths than there are objects in storage some are missing, and
 * a hundred missing ones are enough to report.
 */
export class NeededObjects<T extends NeededObject = NeededObject> {
  readonly #found = new Map<string, T>();

  /** `key` distinguishes what is needed for different reasons. */
  add(needed: T, key = needed.path): void {
    const known = this.#found.get(key);
    if (!known) this.#found.set(key, needed);
    else if (needed.span && (known.span?.end ?? -1) < needed.span.end) known.span = needed.span;
  }

  /** At most twice `stored`, since a path may be needed for two reasons, and a hundred more. */
  list(stored: number): T[] {
    return [...this.#found.values().take(2 * stored + MORE)];
  }
}

/** As many faults as are reported for an asset. */
const MORE = 100;
