/** A frame rate as a fraction, so that 23.976 stays 24000/1001. */
export type Rate = { num: number; den: number };

/**
 * The rate in lowest terms.
 * @example
 * reducedRate({ num: 50_000, den: 1001 * 2 }) // => { num: 25_000, den: 1001 }
 */
export function reducedRate({ num, den }: Rate): Rate {
  let a = num;
  let b = den;
  while (b > 0) [a, b] = [b, a % b];
  return { num: num / a, den: den / a };
}
