import type { Chromaticity, ContentLight, HdrMetadata, MasteringDisplay } from "#lib/codecs";
import { type Box, boxes, uint16, uint32 } from "./boxes.ts";
import { sampleEntryOf } from "./segments.ts";
import { box, shorts, words } from "./write-boxes.ts";

/**
 * The boxes `mdcv` and `clli` of a sample entry (ISO/IEC 14496-12, 12.1.6 and 12.1.7), as far as there are metadata for them,
 * for players that prepare the display before they decode.
 */
export const hdrBoxes = ({ mastering, light }: HdrMetadata): Buffer[] => [
  ...(mastering ? [mdcv(mastering)] : []),
  ...(light ? [clli(light)] : []),
];

/** In the order green, blue, red, as in the SEI message. */
const mdcv = ({ red, green, blue, white, maxLuminance, minLuminance }: MasteringDisplay) =>
  box("mdcv", shorts(...green, ...blue, ...red, ...white), words(maxLuminance, minLuminance));
const clli = ({ maxContent, maxAverage }: ContentLight) => box("clli", shorts(maxContent, maxAverage));

/** What these boxes of an init segment state; null where one is absent. Throws Error when a box is truncated. */
export function readHdrBoxes(init: Buffer): HdrMetadata {
  const entry = sampleEntryOf(init);
  const all = entry ? [...boxes(init, entry.fieldsEnd, entry.end)] : [];
  const read = <T>(wanted: string, parse: (box: Box) => T): T | null => {
    const found = all.find(({ type }) => type === wanted);
    return found ? parse(found) : null;
  };
  return {
    mastering: read("mdcv", (mdcv) => {
      const point = (at: number): Chromaticity => [uint16(init, mdcv, at), uint16(init, mdcv, at + 2)];
      return {
        green: point(0),
        blue: point(4),
        red: point(8),
        white: point(12),
        maxLuminance: uint32(init, mdcv, 16),
        minLuminance: uint32(init, mdcv, 20),
      };
    }),
    light: read("clli", (clli) => ({ maxContent: uint16(init, clli, 0), maxAverage: uint16(init, clli, 2) })),
  };
}
