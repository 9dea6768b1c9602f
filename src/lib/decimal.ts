/** Decimal numbers as whole numbers of 10^-places: sums of money are not for binary fractions. */

/** Null for what is no plain decimal of at most so many places, 1e-7 and NaN too. */
export function scaled(value: number, places: number): bigint | null {
  const match = /^(\d+)(?:\.(\d+))?$/.exec(String(value));
  const [, whole = "", fraction = ""] = match ?? [];
  return match && fraction.length <= places ? BigInt(whole + fraction.padEnd(places, "0")) : null;
}

/** The number that prints as these digits, exactly while they are no more than 15. */
export function unscaled(value: bigint, places: number): number {
  const digits = String(value).padStart(places + 1, "0");
  return Number(`${digits.slice(0, -places)}.${digits.slice(-places)}`);
}

/** `a / b`, both positive, to the nearest whole number; a half goes up. */
export const dividedHalfUp = (a: bigint, b: bigint): bigint => (2n * a + b) / (2n * b);
