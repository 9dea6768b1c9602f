/**
 * Names in a sentence: `a`, `a or b`, `a, b or c`.
 * @example
 * alternatives(["a", "b", "c"]) // => "a, b or c"
 */
export const alternatives = (names: readonly string[]): string =>
  [names.slice(0, -1).join(", "), ...names.slice(-1)].filter((part) => part !== "").join(" or ");
