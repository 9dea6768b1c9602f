import { discarded, type HostileAttack, repeatedly } from "./attack.ts";

const animation = (n: number) => `animated.gif?start=0&end=4&fps=30&width=${300 + 2 * (n % 170)}`;
const still = (n: number) =>
  `thumbnail.webp?time=${(n % 40) / 10}&width=${100 + 2 * (n % 900)}&height=${100 + (n % 7)}`;

const IMAGES: Record<string, (n: number) => string> = { animations: animation, stills: still };

export const images: HostileAttack[] = Object.entries(IMAGES).map(([name, path]) => ({
  name: `8 clients of ${name}`,
  run: (target, signal) =>
    repeatedly(signal, 8, (n) =>
      discarded(target, `/media/${target.assetId}/${path(n)}`, { signal, isAnonymous: true }),
    ),
}));
