import type { AssetRow, RenditionRow } from "#storage/db/schema.ts";

/** Short sides that can be named. */
const SIDES = [2160, 1440, 1080, 720, 540, 480, 360, 270, 240, 144] as const;
/** The largest short side of names without a number. */
const CAPS = { low: 360, medium: 540, high: 1080 } as const;
const AUDIO = "audio-only";
const HIGHEST = "highest";

export const STATIC_NAMES: readonly string[] = [
  ...[HIGHEST, AUDIO],
  ...Object.keys(CAPS),
  ...SIDES.flatMap((side) => [`${side}p`, `capped-${side}p`]),
];

/** The file of a name, and the name of a file; null for a file without one. */
export const fileOf = (name: string) => (name === AUDIO ? "audio.m4a" : `${name}.mp4`);
export function nameOfFile(file: string): string | null {
  return STATIC_NAMES.find((name) => fileOf(name) === file) ?? null;
}

/** `bytes` is null where there is no file, or where its size is unknown, because storage fails or is slow. */
export type StaticSize = { bytes: number | null; version: string };

export type Sized = { width: number | null; height: number | null };
export const sideOf = ({ width, height }: Sized) => Math.min(width ?? 0, height ?? 0);
export const isAudioOnly = (name: string) => name === AUDIO;

/**
 * The rendition that a name means, of those with video; undefined where there is none. `highest`: the largest. `<n>p`: of
 * exactly that short side. `capped-<n>p`, `high`, `medium`, `low`: the largest of at most that short side, or the smallest.
 */
export function chosenBy<T extends Sized>(name: string, renditions: readonly T[]): T | undefined {
  const sorted = renditions.filter((one) => sideOf(one) > 0).toSorted((a, b) => sideOf(b) - sideOf(a));
  if (name === HIGHEST) return sorted[0];
  const [, capped, number] = /^(capped-)?(\d+)p$/.exec(name) ?? [];
  if (number !== undefined && capped === undefined) return sorted.find((one) => sideOf(one) === Number(number));
  const cap = number === undefined ? CAPS[name as keyof typeof CAPS] : Number(number);
  return sorted.find((one) => sideOf(one) <= cap) ?? sorted.at(-1);
}

type WithRenditions = Pick<AssetRow, "renditions" | "audioRenditions" | "width" | "height">;

/** The renditions of an asset with video; those of media that were encoded elsewhere may be unknown. */
const videosOf = ({ renditions, width, height }: WithRenditions): (Sized & Partial<RenditionRow>)[] =>
  renditions.length > 0 ? renditions : [{ width, height }];

/** What a name means for a ready asset; null where it has none. */
export function meantBy(name: string, asset: WithRenditions): (Sized & Partial<RenditionRow>) | null {
  if (!isAudioOnly(name)) return chosenBy(name, videosOf(asset)) ?? null;
  const audio = asset.audioRenditions[0] ?? (asset.width === null ? asset.renditions[0] : undefined);
  const isKnown = asset.renditions.length > 0 || asset.audioRenditions.length > 0;
  return audio ?? (isKnown ? null : { width: null, height: null });
}
