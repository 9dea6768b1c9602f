import * as v from "valibot";
import { MediaError } from "./error.ts";
import { type Binaries, run, type SourceRun, untrustedInput } from "./ffmpeg.ts";
import type { Probe } from "./probe.ts";
import type { SkippedTrack } from "./tracks.ts";

/** More than a decoder needs to return its first frame, even after damage. */
const PACKETS = 600;
const Frames = v.object({ streams: v.array(v.object({ nb_read_frames: v.optional(v.string(), "") })) });

/**
 * The tracks of a source whose encode has failed, divided by whether their decoder returns anything; null when that does not
 * differ between them. Throws MediaError `aborted`.
 */
export async function withoutUndecodable(
  probe: Probe,
  { input, binaries, run: common }: { input: string; binaries: Binaries; run: SourceRun },
): Promise<{ probe: Probe; skipped: SkippedTrack[] } | null> {
  const isDecoded = async ({ index }: { index: number }): Promise<boolean> => {
    const selection = ["-select_streams", String(index), "-read_intervals", `%+#${PACKETS}`, "-count_frames"];
    const args = ["-hide_banner", "-loglevel", "error", ...selection, "-show_entries", "stream=nb_read_frames"];
    try {
      const stdout = await run(binaries.ffprobe, {
        ...common,
        args: [...args, "-of", "json", ...untrustedInput(input)],
        timeLimitMs: 300_000,
      });
      const { streams } = v.parse(v.pipe(v.string(), v.parseJson(), Frames), stdout.toString("utf8"));
      return Number(streams[0]?.nb_read_frames) > 0;
    } catch (error) {
      if (error instanceof MediaError && error.code === "aborted") throw error;
      return false;
    }
  };
  const video = probe.video && (await isDecoded(probe.video)) ? probe.video : null;
  const audio: Probe["audio"] = [];
  for (const track of probe.audio) if (await isDecoded(track)) audio.push(track);
  const before = [...(probe.video ? [{ kind: "video" as const, track: probe.video }] : [])];
  const tracks = [...before, ...probe.audio.map((track) => ({ kind: "audio" as const, track }))];
  const skipped = tracks
    .filter(({ track }) => track !== video && !audio.some((one) => one === track))
    .map(({ kind, track }) => ({ number: track.index + 1, kind, codec: track.codec, isUnsupported: false }));
  if (skipped.length === 0 || skipped.length === tracks.length) return null;
  return { probe: { ...probe, video, audio }, skipped };
}
