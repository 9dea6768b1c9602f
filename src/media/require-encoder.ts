import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { UserError } from "#lib/base";
import {
  additionalVideoCodecs,
  deviceArguments,
  type Encoder,
  type Encoders,
  encoderFor,
  usesDevices,
  videoCodecs,
} from "#lib/codecs";
import type { EncodingSpec } from "./encoding-spec.ts";
import { MediaError } from "./error.ts";
import { run, type SourceRun } from "./ffmpeg.ts";
import { componentsOf, pixelFormatsOf } from "./ffmpeg-components.ts";
import type { AdditionalPlan } from "./plan.ts";

/**
 * What encodes each codec with `encoder`, which must support the primary codec; `lacking`: the additional codecs that it
 * does not support, and why, which are encoded in software. A few frames are encoded as a test: a list of encoders shows
 * what was compiled, not what the machine supports. Throws UserError.
 */
export async function requireEncoder(
  ffmpeg: string,
  encoder: Encoder,
  { video }: EncodingSpec,
): Promise<{ encoders: Encoders; lacking: string[] }> {
  if (encoder === "software") return { encoders: {}, lacking: [] };
  const fault = await tryEncoder(ffmpeg, encoder, video);
  if (fault !== null)
    throw new UserError(
      `VODBOX_ENCODER=${encoder} does not work on this machine: ${fault} Unset it to use software encoding, or set VODBOX_FFMPEG to an ffmpeg that supports it.`,
    );
  const encoders: Record<string, Encoder> = { [video.codec]: encoder };
  const lacking: string[] = [];
  for (const { name, defaults } of additionalVideoCodecs) {
    const message = await tryEncoder(ffmpeg, encoder, defaults.settings);
    if (message === null) encoders[name] = encoder;
    else lacking.push(`${name}: ${message}`);
  }
  return { encoders, lacking };
}

type TestedSettings = { codec: keyof typeof videoCodecs; profile: string; preset: string; pixel_format: string };

/** Null when it encodes; else ffmpeg's message. */
async function tryEncoder(ffmpeg: string, encoder: Encoder, settings: TestedSettings): Promise<string | null> {
  const cwd = await mkdtemp(join(tmpdir(), "encoder-"));
  const { global, filters } = deviceArguments(encoder);
  const limits = { maxBitrate: 900_000, buffer: 1_350_000, crf: 23 };
  const output = videoCodecs[settings.codec].encoderArguments[encoder](limits, settings);
  const testVideo = ["-f", "lavfi", "-i", "testsrc2=s=640x360:r=30:d=0.5"];
  const shape = ["-vf", [`format=${settings.pixel_format}`, ...filters].join(",")];
  try {
    await run(ffmpeg, {
      args: ["-nostdin", "-v", "error", ...global, ...testVideo, ...shape, ...output, "-f", "null", "-"],
      cwd,
      devices: true,
      timeLimitMs: 30_000,
    });
    return null;
  } catch (error) {
    if (!(error instanceof MediaError)) throw error;
    return error.logTail.split("\n").at(-1)?.trim() || error.message;
  } finally {
    await rm(cwd, { recursive: true, force: true });
  }
}

/**
 * Throws MediaError `encode_failed` when this ffmpeg lacks a software encoder of the plans, or its bit depth: that of another worker
 * may have it.
 */
export async function requireAdditionalEncoders(
  ffmpeg: string,
  {
    additional,
    encoders,
  }: { additional: readonly Pick<AdditionalPlan, "settings" | "hdr">[]; encoders?: Encoders | undefined },
  common: SourceRun,
): Promise<void> {
  const plans = additional.filter(({ settings, hdr }) => !usesDevices(encoderFor(encoders, settings.codec, hdr)));
  if (plans.length === 0) return;
  const has = await componentsOf(ffmpeg, "encoders", common);
  const lacks = (name: string, what: string) =>
    new MediaError(
      "encode_failed",
      `The encoding profile requires ${name}, but the worker's ffmpeg has ${what}; the ffmpeg of a release has it.`,
      true,
    );
  for (const { settings, hdr } of plans) {
    const { softwareEncoder, name } = videoCodecs[settings.codec];
    if (!has.has(softwareEncoder)) throw lacks(name, `no encoder ${softwareEncoder}`);
    if (hdr && !(await pixelFormatsOf(ffmpeg, softwareEncoder, common)).has(settings.pixel_format))
      throw lacks(`HDR in ${name}`, `an encoder ${softwareEncoder} without 10 bit`);
  }
}
