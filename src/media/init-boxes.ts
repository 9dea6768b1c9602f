import type { HdrMetadata, SphericalMetadata } from "#lib/codecs";
import { field, find, hdrBoxes, readColors, sphericalBoxes } from "#lib/isobmff";
import { readResult, writeResult } from "./results.ts";

/** What players read of a rendition before they decode. Null: there is none. */
export type StatedMetadata = { hdr: HdrMetadata | null; spherical: SphericalMetadata | null };

/**
 * Adds metadata to an init segment that ffmpeg has just written: its encoders do not pass metadata to the muxer, and the muxer
 * writes the metadata of a copied stream only when it may leave the standard. Without effect when there is no such file, because
 * the encoder received no input. Throws Error for an init segment without a sample entry.
 */
export async function addInitBoxes(path: string, { hdr, spherical }: StatedMetadata): Promise<void> {
  if (!hdr && !spherical) return;
  const init = await readResult(path).catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT") return null;
    throw error;
  });
  if (!init) return;
  const { width } = readColors(init);
  const added = Buffer.concat([...(hdr ? hdrBoxes(hdr) : []), ...(spherical ? sphericalBoxes(spherical, width) : [])]);
  if (added.length > 0) await writeResult(path, withEntryBoxes(init, added));
}

/** An init segment with further boxes at the end of its sample entry. */
function withEntryBoxes(init: Buffer, added: Buffer): Buffer {
  const path = ["moov", "trak", "mdia", "minf", "stbl", "stsd"];
  const stsd = find(init, path);
  if (!stsd) throw new Error("The init segment has no sample description.");
  // ISO/IEC 14496-12, 8.5.2: after version, flags and the number of entries. Ours have one.
  const entry = field(stsd, 8, 8);
  const end = entry + init.readUInt32BE(entry);
  const result = Buffer.concat([init.subarray(0, end), added, init.subarray(end)]);
  const headers = path.map((_, depth) => field(find(init, path.slice(0, depth + 1)) ?? stsd, -8, 4));
  for (const at of [...headers, entry]) result.writeUInt32BE(result.readUInt32BE(at) + added.length, at);
  return result;
}
