import { useCallback, useEffect, useRef, useState } from "preact/hooks";

export type ResourceState<T> = { value: T | null; error: unknown; reload(): void; set(value: T): void };

/** One resource of the API; null until it is loaded. Loads again when one of `inputs`, which `load` reads, changes. */
export function useResource<T>(load: () => Promise<T>, inputs: readonly unknown[]): ResourceState<T> {
  const [value, setValue] = useState<T | null>(null);
  const [error, setError] = useState<unknown>(null);
  const request = useRef(0);
  const reload = useCallback(async () => {
    const own = ++request.current;
    try {
      const loaded = await load();
      if (own !== request.current) return;
      setValue(loaded);
      setError(null);
    } catch (thrown) {
      if (own === request.current) setError(thrown);
    }
  }, inputs);
  useEffect(() => {
    setValue(null);
    void reload();
    return () => {
      request.current++;
    };
  }, [reload]);
  return { value, error, reload, set: setValue };
}
