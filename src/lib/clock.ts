/** Time as the program sees it, in milliseconds since the epoch. Tests hand in one that they can turn. */
export type Clock = { now(): number };
export const systemClock: Clock = { now: () => Date.now() };

/** RFC 3339 UTC; null stays null. */
export function iso(ms: number): string;
export function iso(ms: number | null): string | null;
export function iso(ms: number | null): string | null {
  return ms === null ? null : new Date(ms).toISOString();
}
