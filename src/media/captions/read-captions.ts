import { Writable } from "node:stream";
import { finished } from "node:stream/promises";
import { pacer } from "#lib/base";
import { type CaptionedCodec, CaptionReader, isCaptioned, unitTypes } from "#lib/closed-captions";
import { clockOutput } from "../clock-output.ts";
import { run, type SourceRun, untrustedInput } from "../ffmpeg.ts";
import type { EncodePlan } from "../plan.ts";
import { isPaused } from "../timeline/pauses.ts";
import { MatroskaBlocks } from "./matroska-blocks.ts";
import { ServiceTexts, type SourceCaptions } from "./service-texts.ts";

/*
 * Closed captions in the video of a source. One pass over its packets, without decoding: ffmpeg returns only the units that may
 * have captions, with the times that the frames have in the encode. Reading a file takes less processor time than its checksum (docs/benchmarks.md).
 */

/** Only ends what would never end: a day of packets is read in minutes. */
const LIMIT_MS = 6 * 3_600_000;
/** Added to all times, because those before the start of the source are negative. */
const OFFSET_SECONDS = 1000;

/** Leaves out all units without captions; packets of a codec without such units are read as a whole. */
function onlyUnitsOf(codec: CaptionedCodec): string[] {
  const types = unitTypes[codec];
  return types.length > 0 ? ["-bsf:0", `filter_units=pass_types=${types.join("|")}`] : [];
}

type Planned = Pick<EncodePlan, "video" | "audio" | "isTransport" | "clockStart" | "durationSeconds">;
type ReadOptions = {
  input: string;
  /** What is produced from the source: captions have its times. */
  plan: Planned;
  ffmpeg: string;
  run: Omit<SourceRun, "onLog">;
  /** 0 to 1. */
  onProgress?: (fraction: number) => void;
};

/** The WebVTT text of each service that shows something. Throws MediaError. */
export async function readClosedCaptions({
  input,
  plan,
  ffmpeg,
  run: common,
  onProgress,
}: ReadOptions): Promise<SourceCaptions[]> {
  const { video, durationSeconds } = plan;
  const codec = video?.track.codec ?? "";
  // Where frames are shown later than AVI states, their order is not known.
  if (video === null || !isCaptioned(codec) || video.track.delaySeconds > 0) return [];
  const { track } = video;
  const texts = new ServiceTexts(durationSeconds);
  const reader = new CaptionReader({
    codec,
    hasBoth: true,
    onService: () => {},
    onCaption: (caption) => texts.add(caption),
  });
  let lastSeconds = 0;
  const blocks = new MatroskaBlocks();
  const pace = pacer();
  const output = new Writable({
    write(chunk: Buffer, _encoding, done) {
      take(chunk).then(() => done(), done);
    },
  });
  const taken = finished(output);
  taken.catch(() => {});
  await run(ffmpeg, {
    ...common,
    args: readArguments(input, plan, { ...track, codec }),
    output,
    timeLimitMs: LIMIT_MS,
    onLog(line) {
      const micros = /^out_time_us=(\d+)/.exec(line)?.[1];
      if (micros === undefined) return;
      common.onMove?.();
      if (durationSeconds) onProgress?.(Math.min(1, Number(micros) / 1e6 / durationSeconds));
    },
  });
  await taken;
  reader.endSegment(durationSeconds ?? lastSeconds);
  return texts.end();

  async function take(chunk: Buffer): Promise<void> {
    for (const { ms, data } of blocks.take(chunk)) {
      const presentedSeconds = ms / 1000 - OFFSET_SECONDS;
      lastSeconds = Math.max(lastSeconds, presentedSeconds);
      if (!isPaused(track.pauses, presentedSeconds)) reader.add({ decodedSeconds: null, presentedSeconds, data });
      await pace();
    }
  }
}

function readArguments(
  input: string,
  plan: Planned,
  track: { index: number; codec: CaptionedCodec; startSeconds: number },
) {
  const own = ["-map", `0:${track.index}`, "-c", "copy"];
  return [
    ...["-nostdin", "-hide_banner", "-y", "-loglevel", "warning"],
    ...["-progress", "pipe:2", "-nostats", "-stats_period", "1"],
    // As in the encode.
    ...(plan.clockStart === null ? [] : ["-copyts", "-start_at_zero"]),
    ...["-fflags", "+genpts", ...untrustedInput(input)],
    // Also frames before a keyframe, and those that are not shown: their captions are.
    ...[
      ...own,
      "-copyinkf",
      "-copypriorss",
      "1",
      ...onlyUnitsOf(track.codec),
      "-map_metadata",
      "-1",
      "-map_chapters",
      "-1",
    ],
    ...["-avoid_negative_ts", "disabled", "-output_ts_offset", String(OFFSET_SECONDS), "-f", "matroska", "pipe:1"],
    // Its position is that in the source, where other packets have nothing to return.
    ...[...own, "-f", "null", "-"],
    ...clockOutput([track], plan),
  ];
}
