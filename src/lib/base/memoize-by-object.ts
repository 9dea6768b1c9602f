/** Calls `make` once for each object, and keeps the result while that object lives. */
export function memoizeByObject<K extends object, T extends object>(make: (of: K) => T): (of: K) => T {
  const values = new WeakMap<K, T>();
  return (of) => {
    const value = values.get(of);
    if (value !== undefined) return value;
    const fresh = make(of);
    values.set(of, fresh);
    return fresh;
  };
}
