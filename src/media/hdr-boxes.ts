import { readFile, writeFile } from "node:fs/promises";
import type { ContentLight, HdrMetadata, MasteringDisplay } from "../lib/hdr.ts";
import { field, find } from "./mp4/boxes.ts";
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
