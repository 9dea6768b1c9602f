import { join } from "node:path";
import type { WrittenRendition } from "../../protocol/task.ts";
import { encodeArguments } from "../arguments.ts";
import type { EncodingSpec } from "../encoding-spec.ts";
import { type Binaries, run, type SourceRun } from "../ffmpeg.ts";
import { withGains } from "../loudness.ts";
import { prepareFolders, readWritten } from "../package.ts";
import type { StoredPlan } from "./stored-plan.ts";
import { toRows } from "./written-rows.ts";

export type AudioOptions = {
  input: string;
  /** Receives the segments; other tasks write to it too. */
  outDir: string;
  plan: StoredPlan;
  spec: EncodingSpec;
  binaries: Binaries;
  run: SourceRun;
  /** 0 to 1. */
  onProgress?: (fraction: number) => void;
};

const STALL_MS = 5 * 60_000;
const TIME_LIMIT_MS = 12 * 3_600_000;

/** Encodes all audio tracks of the source in one run, which costs a hundredth of the video. Throws MediaError. */
export async function encodeAudio(options: AudioOptions): Promise<WrittenRendition[]> {
  const { input, outDir, spec, binaries, onProgress } = options;
  const loudness = { input, spec, ffmpeg: binaries.ffmpeg, run: options.run };
  const plan = { ...options.plan, video: null, audio: await withGains(options.plan.audio, loudness) };
  await prepareFolders(outDir, plan);
  await run(binaries.ffmpeg, {
    ...options.run,
    args: encodeArguments({ input, outDir, plan, whole: options.plan, spec }),
    timeLimitMs: TIME_LIMIT_MS,
    stallMs: STALL_MS,
    onPosition: (seconds) => plan.durationSeconds && onProgress?.(Math.min(1, seconds / plan.durationSeconds)),
  });
  const rows: WrittenRendition[] = [];
  for (const { name } of plan.audio) {
    const written = await readWritten(outDir, name);
    if (written) rows.push(await toRows(join(outDir, name), written, 0));
  }
  return rows;
}
