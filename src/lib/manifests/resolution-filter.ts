import { withoutVariants } from "./codec-filter.ts";
import { hlsAttribute } from "./hls-attributes.ts";
import { linesOf } from "./lines-of.ts";

/** Pixels of the shorter side: 720 of 1280x720 and of 720x1280. */
export type SideRange = { min: number; max: number };

/** The shorter side of a variant; null where its line does not say it, as for audio. */
function sideOf(line: string): number | null {
  const [, width, height] = /^(\d{1,6})x(\d{1,6})$/.exec(hlsAttribute(line, "RESOLUTION") ?? "") ?? [];
  return width === undefined || height === undefined ? null : Math.min(Number(width), Number(height));
}

/**
 * A master playlist with only the variants in a range of resolutions. Where none is in it, those next to it are kept:
 * a playlist without video does not play. Linear in time. Throws TooComplex.
 */
export function masterWithin(playlist: string, { min, max }: SideRange): string {
  const sides = new Set<number>();
  for (const line of linesOf(playlist)) {
    const side = line.startsWith("#EXT-X-STREAM-INF:") ? sideOf(line) : null;
    if (side !== null) sides.add(side);
  }
  const kept = [...sides].filter((side) => side >= min && side <= max);
  const nearest = (side: number) => (side > max ? side - max : min - side);
  if (kept.length === 0 && sides.size > 0) kept.push([...sides].reduce((a, b) => (nearest(b) < nearest(a) ? b : a)));
  const shown = new Set(kept);
  return withoutVariants(playlist, (line) => {
    const side = line.startsWith("#EXT-X-MEDIA:") ? null : sideOf(line);
    return side !== null && !shown.has(side);
  });
}

/** A master playlist whose variants are in the order of their bandwidth, the lowest first: players begin with the first one. */
export function masterAscending(playlist: string): string {
  const lines = [...linesOf(playlist)];
  const variants: { at: number; uriAt: number; bandwidth: number; line: string; uri: string }[] = [];
  let at: number | null = null;
  for (const [index, line] of lines.entries()) {
    if (line.startsWith("#EXT-X-STREAM-INF:")) at = index;
    else if (at !== null && line !== "" && !line.startsWith("#")) {
      const own = lines[at] as string;
      const bandwidth = Number.parseInt(hlsAttribute(own, "BANDWIDTH") ?? "", 10) || 0;
      variants.push({ at, uriAt: index, bandwidth, line: own, uri: line });
      at = null;
    }
  }
  const sorted = variants.toSorted((a, b) => a.bandwidth - b.bandwidth);
  for (const [index, { at, uriAt }] of variants.entries()) {
    const { line, uri } = sorted[index] as (typeof sorted)[number];
    lines[at] = line;
    lines[uriAt] = uri;
  }
  return lines.join("\n");
}
