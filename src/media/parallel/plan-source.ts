import type { PlanResult, UncuttableReason } from "../../protocol/task.ts";
import type { EncodingSpec } from "../encoding-spec.ts";
import { MediaError } from "../error.ts";
import { type Binaries, run, type SourceRun, untrustedInput } from "../ffmpeg.ts";
import { findPassthrough } from "../passthrough.ts";
import { type EncodePlan, planEncode } from "../plan.ts";
import type { Probe } from "../probe.ts";
import type { StoredPlan } from "./stored-plan.ts";

type PlanOptions = { input: string; probe: Probe; spec: EncodingSpec; binaries: Binaries; run: SourceRun };

/** A chunk of the default length would decode at least as much again. */
const LONG_GOP_SECONDS = 20;
const GOP_SAMPLES = 100;

/**
 * Decides what is produced from a source, and whether it can be cut. Throws MediaError: `input_invalid` for a source
 * beyond the limits, `aborted`.
 */
export async function planSource(options: PlanOptions): Promise<PlanResult> {
  const { input, probe, spec, binaries } = options;
  const plan = planEncode(probe, spec);
  const source = { input, probe, plan, spec, binaries, run: options.run };
  const uncuttable = await reasonOf(options, plan, source);
  const stored: StoredPlan = { ...plan, seekBackSeconds: seekBackSeconds(probe.format) };
  return {
    plan: stored,
    duration_seconds: plan.durationSeconds,
    frame_rate: plan.video?.rate ?? null,
    segment_seconds: spec.segment_seconds,
    has_audio: plan.audio.length > 0,
    uncuttable,
  };
}

type Source = Parameters<typeof findPassthrough>[0];

async function reasonOf(options: PlanOptions, plan: EncodePlan, source: Source): Promise<UncuttableReason | null> {
  const { video } = plan;
  if (!video) return "no_video";
  if (!plan.durationSeconds) return "unknown_duration";
  if (video.holdUntilSeconds > 0) return "held_frame";
  if (await findPassthrough(source)) return "passthrough";
  return (await longestLead(options, plan)) > LONG_GOP_SECONDS ? "long_gop" : null;
}

/**
 * In these containers a seek by time finds a position that may be later than the keyframe before that time, so that it
 * must begin a GOP earlier.
 */
const seekBackSeconds = (format: string) => (/^(mpegts|mpeg)$/.test(format) ? 6 : 0.1);

/**
 * The longest time, in seconds, between a keyframe and the position that is decoded from it, at positions spread over the
 * source; without decoding, and without reading all of it.
 */
async function longestLead({ input, binaries, run: common }: PlanOptions, { video, durationSeconds }: EncodePlan) {
  const step = (durationSeconds ?? 0) / (GOP_SAMPLES + 1);
  const times = Array.from({ length: GOP_SAMPLES }, (_, index) => (index + 1) * step);
  try {
    const stdout = await run(binaries.ffprobe, {
      ...common,
      reads: [input],
      writes: [],
      args: [
        ...["-hide_banner", "-loglevel", "error", "-select_streams", String(video?.track.index)],
        ...["-show_entries", "packet=pts_time", "-of", "csv=p=0"],
        ...["-read_intervals", times.map((seconds) => `${seconds.toFixed(3)}%+#1`).join(",")],
        ...untrustedInput(input),
      ],
      timeLimitMs: 120_000,
    });
    const found = stdout.toString("latin1").split("\n").filter(Boolean).map(Number.parseFloat);
    // Positions without a packet, behind the last one, have none.
    return found.reduce((most, seconds, index) => Math.max(most, (times[index] ?? 0) - seconds), 0);
  } catch (error) {
    // A source in which seeking fails is encoded in one run, which reports its faults.
    if (error instanceof MediaError && error.code !== "aborted") return Number.POSITIVE_INFINITY;
    throw error;
  }
}
