import { execFile } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { emptyFolder } from "./folder.ts";
import { binaries } from "./media/sources.ts";

/** Our own ffmpeg, which starts in a few milliseconds. */
export const tool = async (name: "ffmpeg" | "ffprobe", ...args: string[]): Promise<Buffer> =>
  (await promisify(execFile)(binaries[name], ["-v", "error", ...args], { encoding: "buffer" })).stdout;

/** Width, height, and red, green and blue of the center, each rounded to 0 or 255. */
export async function seen(bytes: Buffer, extension: string) {
  const file = join(emptyFolder(), `picture.${extension}`);
  writeFileSync(file, bytes);
  const middle = ["-vf", "crop=8:8,scale=1:1", "-frames:v", "1", "-f", "rawvideo", "-pix_fmt", "rgb24", "-"];
  const [size, pixel] = await Promise.all([
    tool("ffprobe", "-show_entries", "stream=width,height", "-of", "csv=p=0", file),
    tool("ffmpeg", "-i", file, ...middle),
  ]);
  return [size.toString().trim(), [...pixel].map((value) => (value > 127 ? 255 : 0)).join(" ")];
}
