import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { UserError } from "../lib/errors.ts";
import type { EncodingSpec } from "./encoding-spec.ts";
import { MediaError } from "./error.ts";
import { run } from "./ffmpeg.ts";
import type { PlannedRendition } from "./ladder.ts";

export const ENCODERS = ["software", "nvenc", "qsv", "vaapi"] as const;
/** What compresses pictures. Only software is what the specification was measured with; others are for who asks. */
export type Encoder = (typeof ENCODERS)[number];

type Made = {
  /** Before the inputs. */
  global: string[];
  /** At the end of each rendition's filters. */
  filters: string[];
  output(one: PlannedRendition, spec: EncodingSpec): string[];
};

const caps = ({ maxBitrate, buffer }: PlannedRendition) => [
  ...["-maxrate", String(maxBitrate)],
  ...["-bufsize", String(buffer)],
];

const made: Record<Encoder, Made> = {
  software: {
    global: [],
    filters: [],
    output: (one, { video }) => [
      ...["-c:v", "libx264", "-preset", video.preset, "-profile:v", video.profile, "-crf", String(one.crf)],
      ...caps(one),
      ...["-sc_threshold", "0"],
    ],
  },
  // A forced key frame must be one that a decoder can begin at.
  nvenc: {
    global: [],
    filters: [],
    output: (one, { video }) => [
      ...["-c:v", "h264_nvenc", "-preset", "p5", "-profile:v", video.profile],
      ...["-rc", "vbr", "-cq", String(one.crf), "-b:v", "0", ...caps(one), "-forced-idr", "1", "-no-scenecut", "1"],
    ],
  },
  qsv: {
    global: [],
    filters: ["format=nv12"],
    output: (one, { video }) => [
      ...["-c:v", "h264_qsv", "-preset", "medium", "-profile:v", video.profile],
      ...["-global_quality", String(one.crf), ...caps(one), "-forced_idr", "1", "-adaptive_i", "0"],
    ],
  },
  vaapi: {
    global: ["-vaapi_device", "/dev/dri/renderD128"],
    filters: ["format=nv12", "hwupload"],
    output: (one, { video }) => [
      ...["-c:v", "h264_vaapi", "-profile:v", video.profile, "-rc_mode", "QVBR"],
      ...["-global_quality", String(one.crf), "-b:v", String(Math.round(one.maxBitrate * 0.7)), ...caps(one)],
    ],
  },
};

export const encoderOf = (encoder: Encoder): Made => made[encoder];

/**
 * Compresses a few pictures, which is the only way to know: a list of encoders tells what was built, not what the machine
 * has. Throws UserError.
 */
export async function requireEncoder(ffmpeg: string, encoder: Encoder, spec: EncodingSpec): Promise<void> {
  if (encoder === "software") return;
  const cwd = await mkdtemp(join(tmpdir(), "encoder-"));
  const { global, filters, output } = made[encoder];
  const rung: PlannedRendition = {
    name: "try",
    width: 640,
    height: 360,
    maxBitrate: 900_000,
    buffer: 1_350_000,
    crf: 23,
  };
  const picture = ["-f", "lavfi", "-i", "testsrc2=s=640x360:r=30:d=0.5"];
  const shape = ["-vf", ["format=yuv420p", ...filters].join(",")];
  try {
    await run(ffmpeg, {
      args: ["-nostdin", "-v", "error", ...global, ...picture, ...shape, ...output(rung, spec), "-f", "null", "-"],
      cwd,
      devices: true,
      timeLimitMs: 30_000,
    });
  } catch (error) {
    if (!(error instanceof MediaError)) throw error;
    const said = error.logTail.split("\n").at(-1)?.trim() || error.message;
    throw new UserError(
      `VODBOX_ENCODER=${encoder} does not work here: ${said} Leave it out to encode by software, or set VODBOX_FFMPEG to an ffmpeg that has it.`,
    );
  } finally {
    await rm(cwd, { recursive: true, force: true });
  }
}
