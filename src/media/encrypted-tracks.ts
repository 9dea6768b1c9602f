import { open } from "node:fs/promises";
import { readEncryptedTracks } from "#lib/isobmff";
import { openMatroskaTexts } from "./captions/matroska-texts.ts";
import { bytesAt, findMoov } from "./mp4-boxes.ts";

/**
 * The tracks of a file that are encrypted, as ffmpeg counts streams, which decodes them as noise and reports no error. None in other
 * containers than MP4, QuickTime and Matroska. Throws the errors of the file.
 */
export async function encryptedTracksOf(path: string): Promise<ReadonlySet<number>> {
  await using matroska = await openMatroskaTexts(path);
  if (matroska) return new Set([...matroska.encrypted].map((number) => number - 1));
  await using file = await open(path);
  const layout = await findMoov(file);
  return layout ? readEncryptedTracks(await bytesAt(file, ...layout)) : new Set();
}
