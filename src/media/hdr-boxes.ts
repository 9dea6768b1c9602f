import { readFile, writeFile } from "node:fs/promises";
import type { Chromaticity, ContentLight, HdrMetadata, MasteringDisplay } from "../lib/hdr.ts";
import { sampleEntryOf } from "./isobmff.ts";
import { type Box, boxes, field, find, uint16, uint32 } from "./mp4/boxes.ts";
import { box, shorts, words } from "./mp4/write-boxes.ts";

/**
 * Adds the metadata of a rendition that keeps HDR to its init segment, once: the encoder does not pass it on to the muxer.
 * Without effect when there is no such file, because the encoder received no input.
 */
export async function addHdrBoxes(path: string, metadata: HdrMetadata): Promise<void> {
  const init = await readFile(path).catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT") return null;
    throw error;
  });
  if (init) await writeFile(path, withHdrBoxes(init, metadata));
}

/**
 * An init segment whose sample entry also has the boxes `clli` and `mdcv` (ISO/IEC 14496-12, 12.1.6 and 12.1.7), for
 * players that prepare the display before they decode. Throws Error for one without a sample entry of video.
 */
function withHdrBoxes(init: Buffer, { mastering, light }: HdrMetadata): Buffer {
  const added = Buffer.concat([...(mastering ? [mdcv(mastering)] : []), ...(light ? [clli(light)] : [])]);
  if (added.length === 0) return init;
  const path = ["moov", "trak", "mdia", "minf", "stbl", "stsd"];
  const stsd = find(init, path);
  if (!stsd) throw new Error("The init segment has no sample description.");
  // 8.5.2: after version, flags and the number of entries. Ours have one.
  const entry = field(stsd, 8, 8);
  const end = entry + init.readUInt32BE(entry);
  const result = Buffer.concat([init.subarray(0, end), added, init.subarray(end)]);
  const headers = path.map((_, depth) => field(find(init, path.slice(0, depth + 1)) ?? stsd, -8, 4));
  for (const at of [...headers, entry]) result.writeUInt32BE(result.readUInt32BE(at) + added.length, at);
  return result;
}

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
        ...{ green: point(0), blue: point(4), red: point(8), white: point(12) },
        ...{ maxLuminance: uint32(init, mdcv, 16), minLuminance: uint32(init, mdcv, 20) },
      };
    }),
    light: read("clli", (clli) => ({ maxContent: uint16(init, clli, 0), maxAverage: uint16(init, clli, 2) })),
  };
}
