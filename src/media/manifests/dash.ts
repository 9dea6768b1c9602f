import { HDR_SIGNALS } from "#lib/codecs";
import { bitRates, type MpdRepresentation, type MpdSet, staticMpd } from "#lib/manifests";
import { surroundOf } from "../audio-groups.ts";
import { MPD_TEMPLATES, videoSetsOf } from "../mpd-sets.ts";
import type { Written } from "../package.ts";
import { channelsOf, languageOf } from "./audio-language.ts";
import { isIndependent, type ManifestData } from "./renditions.ts";

/** Values of ISO/IEC 23091-2 for the HDR that is kept: ITU-R BT.2100 in Y'CbCr. */
const BT2020_CICP = { primaries: 9, matrix: 9 };

/** The DASH manifest; `target`: seconds of the longest segment. */
export function mpd(
  { plan, spec, videos, audios, storyboard, begins, prefersFirst }: ManifestData,
  target: number,
  durationSeconds: number,
): string {
  const frameRate = plan.video
    ? plan.video.rate.den === 1
      ? `${plan.video.rate.num}`
      : `${plan.video.rate.num}/${plan.video.rate.den}`
    : "";
  const base = ({ name, init, segments }: Written): MpdRepresentation => ({
    id: name,
    bandwidth: bitRates(segments, target).peak,
    codec: init.codec,
    timescale: init.timescale,
    segments,
    isIndependent: isIndependent(segments),
    begins: begins && { number: begins.number, time: Math.round(begins.seconds * init.timescale) },
  });
  const hasSurround = audios.some((one) => surroundOf(plan, one) !== null);
  const audioSets: MpdSet[] = audios.map((one, index) => ({
    kind: "audio",
    language: languageOf(plan, one),
    isMain: index === 0,
    // Players begin with stereo; those for 5.1 choose by the number of channels.
    selectionPriority: hasSurround ? (surroundOf(plan, one) === null ? 2 : 1) : undefined,
    representations: [{ ...base(one), audio: { sampleRate: one.init.timescale, channels: channelsOf(plan, one) } }],
  }));
  const videoSets = videoSetsOf(
    videos.map((one) => {
      const { width, height, hdr } = one.init;
      const colors = hdr ? { ...BT2020_CICP, transfer: HDR_SIGNALS[hdr].cicp } : undefined;
      return { representation: { ...base(one), video: { width, height, frameRate } }, colors };
    }),
    { prefersFirst },
  );
  return staticMpd({
    profile: spec.dash.profile,
    durationSeconds,
    maxSegmentSeconds: target,
    ...MPD_TEMPLATES,
    sets: [...videoSets, ...audioSets],
    ...(storyboard && {
      tiles: { ...storyboard, mediaTemplate: spec.storyboard.image },
    }),
  });
}
