import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { binaries } from "#test/support/media/sources.ts";
import { childSeconds } from "./processes.ts";

const run = promisify(execFile);

/** bit/s that no encode reaches: a curve without caps shows the encoder alone. SVT-AV1 accepts no more. */
export const UNCAPPED = 100_000_000;

/** A program that encodes the video of `input` into an MP4 file, at its size. */
type Reference = { crfs: readonly number[]; encode(input: string, file: string, crf: number): Promise<void> };

/**
 * Defaults of other programs, each at its default quality and at three others, so that there is a curve. Audio and cropping are
 * switched off.
 */
export const REFERENCES: Record<string, Reference> = {
  /** HandBrake's default preset: x264 `fast`, Main, quality 22. A keyframe at cuts and after 10 s. */
  "HandBrake Fast 1080p30": {
    crfs: [18, 22, 26, 30],
    encode: async (input, file, crf) => {
      const options = ["--preset", "Fast 1080p30", "--quality", String(crf), "--crop", "0:0:0:0", "--audio", "none"];
      await run("HandBrakeCLI", ["-i", input, "-o", file, ...options], { maxBuffer: 2 ** 26 });
    },
  },
  /**
   * What Jellyfin's `EncodingHelper.GetVideoQualityParam` and `GetHlsVideoKeyFrameArguments` compose for H.264 in software: CRF
   * 23, segments of 3 s. `subme=0` replaces the motion estimation of the preset.
   */
  "Jellyfin H.264": {
    crfs: [19, 23, 27, 31],
    encode: async (input, file, crf) => {
      const x264 = "subme=0:me_range=16:rc_lookahead=10:me=hex:open_gop=0";
      await run(binaries.ffmpeg, [
        ...["-nostdin", "-v", "error", "-y", "-i", input, "-an", "-pix_fmt", "yuv420p"],
        ...["-c:v", "libx264", "-preset", "veryfast", "-crf", String(crf)],
        ...["-maxrate", String(UNCAPPED), "-bufsize", String(2 * UNCAPPED), "-profile:v", "high", "-level", "51"],
        ...["-x264opts", x264, "-force_key_frames", "expr:gte(t,n_forced*3)", "-sc_threshold", "0", file],
      ]);
    },
  },
};

/** Encodes with a reference. `kbits` counts the packets, without the container; `seconds` are of the processor, with decoding. */
export async function encodeReference(name: string, { input, dir, crf }: { input: string; dir: string; crf: number }) {
  const file = join(dir, "reference.mp4");
  const before = childSeconds();
  await (REFERENCES[name] as Reference).encode(input, file, crf);
  const seconds = childSeconds() - before;
  const read = ["-v", "error", "-select_streams", "v", "-show_entries", "packet=size:stream=duration", "-of", "json"];
  const { stdout } = await run(binaries.ffprobe, [...read, file], { maxBuffer: 2 ** 26 });
  const { packets, streams } = JSON.parse(stdout) as { packets: { size: string }[]; streams: { duration: string }[] };
  const bytes = packets.reduce((sum, { size }) => sum + Number(size), 0);
  const kbits = (bytes * 8) / Number(streams[0]?.duration) / 1000;
  return { file, kbits: Math.round(kbits * 10) / 10, seconds };
}
