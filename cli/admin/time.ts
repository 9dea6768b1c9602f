import { UserError } from "#lib/base";

const UNITS: Record<string, number> = { s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/** Milliseconds of `30d`, `12h`, `45m` or `10s`; null for anything else. */
function amountMs(text: string): number | null {
  const [, amount, unit] = /^(\d{1,6})([smhd])$/.exec(text) ?? [];
  return Number(amount) * (UNITS[unit ?? ""] ?? 0) || null;
}

/** A duration from now. */
export function durationMs(flag: string, text: string): number {
  const ms = amountMs(text);
  if (ms === null) throw new UserError(`${flag} ${text} is not a duration; use 30d, 12h or 45m.`, 2);
  return ms;
}

/** A duration ago, or a date; as RFC 3339. */
export function momentOf(flag: string, text: string): string {
  const ago = amountMs(text);
  const at = ago === null ? Date.parse(text) : Date.now() - ago;
  if (Number.isNaN(at)) throw new UserError(`${flag} ${text} is not a time; use 2h, 7d or 2026-11-20T09:30:00Z.`, 2);
  return new Date(at).toISOString();
}
