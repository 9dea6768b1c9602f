import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import type { List } from "#clients/typescript/list.ts";

export type ListState<T> = {
  items: T[];
  isLoading: boolean;
  error: unknown;
  hasMore: boolean;
  loadMore(): void;
  reload(): void;
  /** Replaces items that were loaded, without a request. */
  update(change: (items: T[]) => T[]): void;
};

const PAGE = 50;

/** A list of the API, page by page. Loads from the start when one of `inputs`, which `list` reads, changes. */
export function useList<T>(list: () => List<T>, inputs: readonly unknown[]): ListState<T> {
  const [items, setItems] = useState<T[]>([]);
  const [cursor, setCursor] = useState<string | null>(null);
  const [isLoading, setLoading] = useState(true);
  const [error, setError] = useState<unknown>(null);
  // A response to an earlier request than the last one is ignored.
  const request = useRef(0);

  const load = useCallback(async (from: string | null, count: number) => {
    const own = ++request.current;
    setLoading(true);
    try {
      const page = await list().page({ limit: count, ...(from !== null && { cursor: from }) });
      if (own !== request.current) return;
      setItems((known) => (from === null ? page.items : [...known, ...page.items]));
      setCursor(page.cursor);
      setError(null);
    } catch (thrown) {
      if (own === request.current) setError(thrown);
    } finally {
      if (own === request.current) setLoading(false);
    }
  }, inputs);
  useEffect(() => {
    setItems([]);
    void load(null, PAGE);
    return () => {
      request.current++;
    };
  }, [load]);
  return {
    items,
    isLoading,
    error,
    hasMore: cursor !== null,
    loadMore: () => cursor !== null && !isLoading && void load(cursor, PAGE),
    reload: useCallback(() => void load(null, PAGE), [load]),
    update: setItems,
  };
}
