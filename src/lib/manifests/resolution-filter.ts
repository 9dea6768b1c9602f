import { editMaster, type MasterEdit, type MasterLine, withoutLines } from "./master-edits.ts";

/** Pixels of the shorter side: 720 of 1280x720 and of 720x1280. */
export type SideRange = { min: number; max: number };

/** Which variants of a master playlist a viewer gets, and in which order. */
export type VariantSelection = {
  /** The resolutions that are kept; null: all are. */
  sides: SideRange | null;
  /** The variants are in ascending order. */
  isAscending: boolean;
};

/** A master playlist with only the variants of a selection, in its order. Linear in time. Throws TooComplex. */
export function masterOfSelection(playlist: string, { sides, isAscending }: VariantSelection): string {
  const edits = [...(isAscending ? [ascending] : []), ...(sides === null ? [] : [within(sides)])];
  return edits.length === 0 ? playlist : editMaster(playlist, edits);
}

/** The shorter side of a variant; null where its line does not say it, as for audio. */
function sideOf(line: MasterLine): number | null {
  const [, width, height] = /^(\d{1,6})x(\d{1,6})$/.exec(line.attribute("RESOLUTION") ?? "") ?? [];
  return width === undefined || height === undefined ? null : Math.min(Number(width), Number(height));
}

/**
 * Keeps only the variants in a range of resolutions. Where none is in it, those next to it are kept: a playlist without
 * video does not play.
 */
export const within =
  ({ min, max }: SideRange): MasterEdit =>
  (lines) => {
    const sides = new Set<number>();
    for (const line of lines) {
      const side = line.kind === "variant" ? sideOf(line) : null;
      if (side !== null) sides.add(side);
    }
    const kept = [...sides].filter((side) => side >= min && side <= max);
    const nearest = (side: number) => (side > max ? side - max : min - side);
    if (kept.length === 0 && sides.size > 0) kept.push([...sides].reduce((a, b) => (nearest(b) < nearest(a) ? b : a)));
    const shown = new Set(kept);
    return withoutLines(lines, (line) => {
      const side = line.kind === "rendition" ? null : sideOf(line);
      return side !== null && !shown.has(side);
    });
  };

/** Puts the variants in the order of their bandwidth, the lowest first: players begin with the first one. */
export const ascending: MasterEdit = (lines) => {
  const written = [...lines];
  const variants: { at: number; uriAt: number; bandwidth: number; line: MasterLine; uri: MasterLine }[] = [];
  let at: number | null = null;
  for (const [index, line] of lines.entries()) {
    if (line.kind === "variant") at = index;
    else if (at !== null && line.kind === "uri") {
      const own = lines[at] as MasterLine;
      const bandwidth = Number.parseInt(own.attribute("BANDWIDTH") ?? "", 10) || 0;
      variants.push({ at, uriAt: index, bandwidth, line: own, uri: line });
      at = null;
    }
  }
  const sorted = variants.toSorted((a, b) => a.bandwidth - b.bandwidth);
  for (const [index, { at, uriAt }] of variants.entries()) {
    const { line, uri } = sorted[index] as (typeof sorted)[number];
    written[at] = line;
    written[uriAt] = uri;
  }
  return written;
};
