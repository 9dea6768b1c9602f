import { MINUTE_MS } from "#features/tenants/usage.ts";

/** Whole minutes since the epoch; `ms` since the epoch. */
export const minuteOf = (ms: number) => Math.floor(ms / MINUTE_MS);
export const startOfMinute = (minute: number) => minute * MINUTE_MS;
