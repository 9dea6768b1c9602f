import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { UserError } from "../lib/errors.ts";
import { videoCodecs } from "./codecs/registry.ts";
import { deviceArguments, type Encoder } from "./encoders.ts";
import type { EncodingSpec } from "./encoding-spec.ts";
import { MediaError } from "./error.ts";
import { run, type SourceRun } from "./ffmpeg.ts";
import { componentsOf, pixelFormatsOf } from "./ffmpeg-components.ts";
import type { AdditionalPlan } from "./plan.ts";

/**
 * Encodes a few frames as a test: a list of encoders shows what was compiled, not what the machine supports. Throws
 * UserError.
 */
export async function requireEncoder(ffmpeg: string, encoder: Encoder, { video }: EncodingSpec): Promise<void> {
  if (encoder === "software") return;
  const cwd = await mkdtemp(join(tmpdir(), "encoder-"));
  const { global, filters } = deviceArguments(encoder);
  const limits = { maxBitrate: 900_000, buffer: 1_350_000, crf: 23 };
  const output = videoCodecs[video.codec].encoderArguments[encoder](limits, video);
  const testVideo = ["-f", "lavfi", "-i", "testsrc2=s=640x360:r=30:d=0.5"];
  const shape = ["-vf", [`format=${video.pixel_format}`, ...filters].join(",")];
  try {
    await run(ffmpeg, {
      args: ["-nostdin", "-v", "error", ...global, ...testVideo, ...shape, ...output, "-f", "null", "-"],
      cwd,
      devices: true,
      timeLimitMs: 30_000,
    });
  } catch (error) {
    if (!(error instanceof MediaError)) throw error;
    const message = error.logTail.split("\n").at(-1)?.trim() || error.message;
    throw new UserError(
      `VODBOX_ENCODER=${encoder} does not work on this machine: ${message} Unset it to use software encoding, or set VODBOX_FFMPEG to an ffmpeg that supports it.`,
    );
  } finally {
    await rm(cwd, { recursive: true, force: true });
  }
}

/**
 * Throws MediaError `encode_failed` when this ffmpeg lacks an encoder of the plans, or its bit depth: that of another worker
 * may have it.
 */
export async function requireAdditionalEncoders(
  ffmpeg: string,
  plans: readonly Pick<AdditionalPlan, "settings" | "hdr">[],
  common: SourceRun,
): Promise<void> {
  if (plans.length === 0) return;
  const has = await componentsOf(ffmpeg, "encoders", common);
  const lacks = (name: string, what: string) =>
    new MediaError(
      "encode_failed",
      `The encoding profile requires ${name}, but the worker's ffmpeg has ${what}; use the bundled ffmpeg.`,
      true,
    );
  for (const { settings, hdr } of plans) {
    const { softwareEncoder, name } = videoCodecs[settings.codec];
    if (!has.has(softwareEncoder)) throw lacks(name, `no encoder ${softwareEncoder}`);
    if (hdr && !(await pixelFormatsOf(ffmpeg, softwareEncoder, common)).has(settings.pixel_format))
      throw lacks(`HDR in ${name}`, `an encoder ${softwareEncoder} without 10 bit`);
  }
}
