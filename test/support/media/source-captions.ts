import { readCaptionTracks } from "#media/captions/caption-tracks.ts";
import { readClosedCaptions } from "#media/captions/read-captions.ts";
import { encodingSpec } from "#media/encoding-spec.ts";
import { planEncode } from "#media/plan.ts";
import { withoutJumps } from "#media/timeline/repair.ts";
import { probeSource } from "#media/timeline.ts";
import { emptyFolder } from "../folder.ts";
import type { Pair } from "../live/closed-captions.ts";
import { binaries } from "./sources.ts";

export type ReadCue = { start: number; end: number; text: string };

/** The cues of each service in a file, in seconds, read as a worker reads them, and the length of what is encoded of it. */
export async function captionsIn(
  path: string,
  { signal }: { signal?: AbortSignal } = {},
): Promise<{ services: Record<string, ReadCue[]>; seconds: number | null }> {
  const cwd = emptyFolder();
  const probe = await probeSource(path, binaries, { cwd });
  const run = { cwd, reads: [path], writes: [], ...(signal && { signal }) };
  const { input, probe: repaired } = await withoutJumps({ input: path, probe }, { binaries, run });
  const plan = planEncode(repaired, encodingSpec);
  const inVideo = await readClosedCaptions({ input, plan, ffmpeg: binaries.ffmpeg, run: { ...run, reads: [input] } });
  const { startSeconds } = repaired;
  const { durationSeconds } = plan;
  const reading = { startSeconds, durationSeconds, signal: signal ?? new AbortController().signal, onMove: () => {} };
  const found = inVideo.length > 0 ? inVideo : await readCaptionTracks(input, reading);
  const services = Object.fromEntries(found.map(({ service, vtt }) => [service, cuesOf(vtt)]));
  return { services, seconds: plan.durationSeconds };
}

const secondsOf = (time: string) => time.split(":").reduce((sum, part) => sum * 60 + Number(part), 0);

/** The cues of a WebVTT text without ids, in seconds. */
export function cuesOf(vtt: string): ReadCue[] {
  return vtt
    .split("\n\n")
    .slice(1)
    .map((block) => {
      const [timing = "", ...lines] = block.trim().split("\n");
      const [start = "", end = ""] = timing.split(/ --> | /);
      return { start: secondsOf(start), end: secondsOf(end), text: lines.join("\n") };
    });
}

/** The frame in which each pair is sent, one in each from a time in milliseconds on. */
export const pairsByFrame = (
  at: readonly (readonly [ms: number, pairs: readonly Pair[]])[],
  rate = 30,
): Map<number, Pair> =>
  new Map(
    at.flatMap(([ms, pairs]) => pairs.map((pair, index) => [Math.round((ms * rate) / 1000) + index, pair] as const)),
  );
