import { useEffect, useRef, useState } from "preact/hooks";
import { vodbox } from "#web/console/api.ts";
import type { Collection } from "#web/console/types.ts";

/** Between two loads while counts change. */
const RELOAD_MS = 5000;

export type Collections = {
  /** Null until they are loaded. */
  all: Collection[] | null;
  /** They are on their way. */
  isLoading: boolean;
  error: unknown;
  reload(): Promise<void>;
  reloadSoon(): void;
};

/** All collections of a tenant: null for the session's own one. Nothing is loaded unless `isShown`. */
export function useCollections(tenant: number | null, isShown: boolean): Collections {
  const [all, setAll] = useState<Collection[] | null>(null);
  const [error, setError] = useState<unknown>(null);
  const request = useRef(0);
  const timer = useRef<ReturnType<typeof setTimeout> | undefined>(undefined);
  const reload = async () => {
    clearTimeout(timer.current);
    timer.current = undefined;
    const own = ++request.current;
    try {
      const found: Collection[] = [];
      for await (const each of vodbox.listCollections(tenant === null ? {} : { tenant_id: tenant })) {
        if (own !== request.current) return;
        found.push(each);
      }
      if (own !== request.current) return;
      setAll(found);
      setError(null);
    } catch (thrown) {
      if (own === request.current) setError(thrown);
    }
  };
  const latest = useRef(reload);
  latest.current = reload;
  useEffect(() => {
    setAll(null);
    if (isShown) void reload();
    return () => {
      request.current++;
      clearTimeout(timer.current);
      timer.current = undefined;
    };
  }, [tenant, isShown]);
  const reloadSoon = () => {
    if (isShown) timer.current ??= setTimeout(() => void latest.current(), RELOAD_MS);
  };
  return { all, isLoading: isShown && all === null && !error, error, reload, reloadSoon };
}
