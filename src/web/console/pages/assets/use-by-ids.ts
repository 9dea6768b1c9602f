import { useEffect, useRef, useState } from "preact/hooks";

const PER_REQUEST = 100;

/**
 * What an operation says of assets, by their id: each asset is requested once while it is in memory, many of them together.
 * `load` gets ids, separated by commas; null: nothing is requested.
 */
export function useByIds<T extends { asset_id: number }>(
  ids: readonly number[],
  load: ((ids: string) => Promise<T[]>) | null,
): ReadonlyMap<number, T> {
  const [found, setFound] = useState<ReadonlyMap<number, T>>(new Map());
  const requested = useRef(new Set<number>());
  const isWanted = load !== null;
  useEffect(() => {
    if (!load) return;
    const present = new Set(ids);
    for (const id of requested.current) if (!present.has(id)) requested.current.delete(id);
    const missing = ids.filter((id) => !requested.current.has(id));
    for (let from = 0; from < missing.length; from += PER_REQUEST) {
      const some = missing.slice(from, from + PER_REQUEST);
      for (const id of some) requested.current.add(id);
      load(String(some)).then(
        (loaded) =>
          setFound((known) => {
            const kept = [...known].filter(([id]) => requested.current.has(id));
            return new Map([...kept, ...loaded.map((each) => [each.asset_id, each] as const)]);
          }),
        // The asset is still listed; the next change of the list tries again.
        () => {
          for (const id of some) requested.current.delete(id);
        },
      );
    }
  }, [String(ids), isWanted]);
  return found;
}
