/** Decimal numbers as integers of 10^-places: amounts of money cannot be binary fractions. */

/** Null for anything but a plain decimal with at most this many places; 1e-7 and NaN too. */
export function scaled(value: number, places: number): bigint | null {
  const match = /^(\d+)(?:\.(\d+))?$/.exec(String(value));
  const [, whole = "", fraction = ""] = match ?? [];
  return match && fraction.length <= places ? BigInt(whole + fraction.padEnd(places, "0")) : null;
}

/** The number that prints as these digits; exact up to 15 digits. */
export function unscaled(value: bigint, places: number): number {
  const digits = String(value).padStart(places + 1, "0");
  return Number(`${digits.slice(0, -places)}.${digits.slice(-places)}`);
}

/** `a / b`, both positive, rounded half up. */
export const dividedHalfUp = (a: bigint, b: bigint): bigint => (2n * a + b) / (2n * b);
