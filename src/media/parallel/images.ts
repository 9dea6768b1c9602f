import type { WrittenRendition } from "#protocol/task.ts";
import type { EncodingSpec } from "../encoding-spec.ts";
import type { Binaries, SourceRun } from "../ffmpeg.ts";
import { type EncodeResult, endsEarly, type FileNames, finish } from "../finish.ts";
import { unseenSeconds } from "../manifests.ts";
import type { SegmentReader } from "../sample-video.ts";
import { undecodedTracks } from "../tracks.ts";
import { Inexact } from "./inexact.ts";
import type { StoredPlan } from "./stored-plan.ts";
import { videoRenditions } from "./video-runs.ts";
import { fromRows } from "./written-rows.ts";

export type ImagesOptions = {
  plan: StoredPlan;
  /** All renditions, with all segments. */
  written: WrittenRendition[];
  /** Receives the files; contains the init segments. */
  outDir: string;
  read: SegmentReader;
  spec: EncodingSpec;
  names: FileNames;
  binaries: Binaries;
  run: SourceRun;
};

/**
 * Writes the thumbnail, the storyboard and the manifests over segments that other tasks have encoded. `files` of the
 * result are those that it wrote. Throws MediaError, and Inexact when the video ends before the audio.
 */
export async function writeImages({ plan, written, ...options }: ImagesOptions): Promise<EncodeResult> {
  const planned = videoRenditions(plan, options.spec);
  const hdrOf = new Map(planned.map(({ name, hdr }) => [name, hdr]));
  const byName = new Map(written.map((one) => [one.name, fromRows(one, hdrOf.get(one.name))]));
  const ofPlan = (renditions: readonly { name: string }[]) =>
    renditions.map(({ name }) => byName.get(name)).filter((one) => one !== undefined);
  const videos = ofPlan(planned);
  const audios = ofPlan(plan.audio);
  if (unseenSeconds(videos[0], audios) > 0) throw new Inexact("its video ends before its audio.");
  const skipped = undecodedTracks(plan, [...videos, ...audios]);
  const result = await finish({ ...options, plan, videos, audios, skipped });
  const segments = new Set(
    [...byName.values()].flatMap(({ name, segments }) => segments.map((one) => `${name}/${one.name}`)),
  );
  const isKnown = plan.warnings.some(({ code }) => code === "source_truncated");
  return {
    ...result,
    files: result.files.filter((file) => !segments.has(file)),
    isTruncated: !isKnown && endsEarly(plan, result),
  };
}
