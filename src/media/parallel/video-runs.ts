import { type HdrFormat, NO_HDR_METADATA } from "#lib/codecs";
import type { KeptHdr } from "../arguments.ts";
import type { AdditionalVideo, EncodingSpec } from "../encoding-spec.ts";
import type { StatedMetadata } from "../init-boxes.ts";
import type { PlannedRendition } from "../ladder.ts";
import { ADDITIONAL_WORK, planAdditional } from "../plan.ts";
import type { StoredPlan } from "./stored-plan.ts";

/** The renditions of one codec, which one run of ffmpeg over a part of the source encodes. */
export type VideoRun = {
  /** Without audio. */
  plan: StoredPlan & { video: NonNullable<StoredPlan["video"]> };
  /** The settings of an additional codec. */
  settings?: AdditionalVideo;
  /** Set when that codec keeps the HDR of the source. */
  hdr?: KeptHdr;
  /** How much work its encoders take, as a multiple of the work for the primary codec. */
  work: number;
};

/**
 * The runs that encode the video of a plan, that of the primary codec first; none without video. They follow from the plan and
 * the specification, which all tasks of an attempt have.
 */
export function videoRuns(plan: StoredPlan, spec: EncodingSpec): VideoRun[] {
  const { video } = plan;
  if (!video) return [];
  const metadata = plan.hdrMetadata ?? NO_HDR_METADATA;
  const others = planAdditional(plan, spec).map(
    ({ settings, hdr, plan: own }): VideoRun => ({
      plan: { ...plan, ...own },
      settings,
      work: ADDITIONAL_WORK,
      ...(hdr && { hdr: { format: hdr, metadata } }),
    }),
  );
  return [{ plan: { ...plan, video, audio: [] }, work: 1 }, ...others];
}

/** What the init segments of all renditions of a run state. */
export const statedBy = ({ plan: { video }, hdr }: VideoRun): StatedMetadata => ({
  hdr: hdr?.metadata ?? null,
  spherical: video.track.spherical,
});

/** A rendition of a plan. `codec`: of an additional one, else null. `hdr`: the format that it keeps; null: it is SDR. */
export type VideoRendition = PlannedRendition & { codec: string | null; hdr: HdrFormat | null };

/** All video renditions of a plan, by codec, the primary codec first. */
export const videoRenditions = (plan: StoredPlan, spec: EncodingSpec): VideoRendition[] =>
  videoRuns(plan, spec).flatMap(({ plan: { video }, settings, hdr }) =>
    video.renditions.map((one) => ({ ...one, codec: settings?.codec ?? null, hdr: hdr?.format ?? null })),
  );

/** The name of the rendition that is copied from the source; null without one. */
export const copiedIn = (plan: StoredPlan, spec: EncodingSpec): string | null =>
  videoRuns(plan, spec).find(({ plan: { video } }) => video.passthrough?.isCopied)?.plan.video.renditions[0]?.name ??
  null;
