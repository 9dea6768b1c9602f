import { execFile } from "node:child_process";
import { rm } from "node:fs/promises";
import { promisify } from "node:util";

const run = promisify(execFile);
/** Made once; longer sources repeat it without encoding. */
const UNIQUE_SECONDS = 60;

/** `isFit`: its video can be copied. */
export type SourceOptions = { seconds: number; gopSeconds?: number; size?: string; isFit?: boolean };

/** H.264 at 30 fps with noise, above the bitrate that would be copied unless it is to fit, and AAC; 1920x1080 by default. */
export async function makeSource(ffmpeg: string, path: string, options: SourceOptions): Promise<void> {
  const { seconds, gopSeconds = 2, size = "1920x1080", isFit = false } = options;
  const unique = Math.min(seconds, UNIQUE_SECONDS);
  const [width = 0, height = 0] = size.split("x").map(Number);
  const bitrate = String(
    Math.round((isFit ? 4e6 : 12e6) * Math.min(1, Math.max(0.25, (width * height) / (1920 * 1080)))),
  );
  const testVideo = [
    "-f",
    "lavfi",
    "-i",
    `testsrc2=size=${size}:rate=30:duration=${unique},noise=alls=${isFit ? 2 : 8}`,
  ];
  const audio = ["-f", "lavfi", "-i", `sine=frequency=330:beep_factor=4:sample_rate=48000:duration=${unique}`];
  const gop = ["-g", String(gopSeconds * 30), "-sc_threshold", "0", "-bf", "0"];
  const video = [
    "-c:v",
    "libx264",
    "-preset",
    "ultrafast",
    "-b:v",
    bitrate,
    ...(isFit ? ["-maxrate", bitrate, "-bufsize", bitrate] : []),
    ...gop,
    "-pix_fmt",
    "yuv420p",
  ];
  const quiet = ["-nostdin", "-y", "-loglevel", "error"];
  const once = seconds > unique ? `${path}.once.mp4` : path;
  await run(ffmpeg, [...quiet, ...testVideo, ...audio, ...video, "-c:a", "aac", once]);
  if (once === path) return;
  const repeats = String(Math.ceil(seconds / unique) - 1);
  await run(ffmpeg, [...quiet, "-stream_loop", repeats, "-i", once, "-c", "copy", "-t", String(seconds), path]);
  await rm(once);
}
