import { join } from "node:path";
import type { WrittenRendition } from "#protocol/task.ts";
import { encodeArguments } from "../arguments.ts";
import { encodeTracks } from "../audio-tracks.ts";
import type { EncodingSpec } from "../encoding-spec.ts";
import { type Binaries, run, type SourceRun, UNTIL_STALLED } from "../ffmpeg.ts";
import { withGains } from "../loudness.ts";
import { prepareFolders, readWritten } from "../package.ts";
import { decodeArguments } from "./audio-arguments.ts";
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
  /** Receives what is written of copied audio, before its faults are looked for: a viewer may wait for it. */
  onWritten?: (rows: WrittenRendition[]) => Promise<void>;
};

/**
 * Encodes all audio tracks of the source, which costs a hundredth of the video. Copied ones are there after
 * seconds, and their faults are found afterwards. Throws MediaError.
 */
export async function encodeAudio(options: AudioOptions): Promise<WrittenRendition[]> {
  const { input, outDir, spec, binaries } = options;
  const copied = options.plan.audio.filter(({ isCopied }) => isCopied);
  const share = copied.length > 0 ? 0.5 : 1;
  const onProgress = (fraction: number, done = 0) => options.onProgress?.(done + fraction * share);
  const loudness = { input, spec, ffmpeg: binaries.ffmpeg, run: options.run };
  const plan = { ...options.plan, video: null, audio: await withGains(options.plan.audio, loudness) };
  await prepareFolders(outDir, plan);
  if (copied.length > 0)
    await run(binaries.ffmpeg, {
      ...options.run,
      args: encodeArguments({
        input,
        outDir,
        spec,
        whole: options.plan,
        isChecked: false,
        plan: { ...plan, audio: copied },
      }),
      ...UNTIL_STALLED,
    });
  await encodeTracks(plan.audio, { ...loudness, outDir, whole: options.plan, onProgress });
  const rows: WrittenRendition[] = [];
  for (const { name } of plan.audio) {
    const written = await readWritten(outDir, name);
    if (written) rows.push(await toRows(join(outDir, name), written, 0));
  }
  if (copied.length > 0) {
    await options.onWritten?.(rows);
    await run(binaries.ffmpeg, {
      ...options.run,
      args: decodeArguments({ input, audio: copied }),
      precedence: "background",
      ...UNTIL_STALLED,
      onPosition: (seconds) => plan.durationSeconds && onProgress(Math.min(1, seconds / plan.durationSeconds), share),
    });
  }
  return rows;
}
