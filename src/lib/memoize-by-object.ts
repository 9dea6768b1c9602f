/** `make` once for each object that it is asked with, for as long as that object lives. */
export function memoizeByObject<K extends object, T extends object>(make: (of: K) => T): (of: K) => T {
  const made = new WeakMap<K, T>();
  return (of) => {
    const found = made.get(of);
    if (found !== undefined) return found;
    const fresh = make(of);
    made.set(of, fresh);
    return fresh;
  };
}
