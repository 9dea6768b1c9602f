import { codecNameOf, HDR_SIGNALS, type HdrFormat } from "#lib/codecs";
import { type AudioRendition, bitRates, masterPlaylist, type PlaylistSegment } from "#lib/manifests";
import type { AudioGroup } from "../audio-groups.ts";
import type { EncodingSpec } from "../encoding-spec.ts";
import type { Segment, Written } from "../package.ts";
import { channelsOf, languageOf, titleOf } from "./audio-language.ts";
import {
  isIndependent,
  type ManifestData,
  type ManifestPlan,
  type Rendition,
  type SizedMedia,
  toRenditions,
} from "./renditions.ts";

/** draft-pantos-hls-rfc8216bis, 4.4.6.2. */
const SDR_RANGE = "SDR";

/** The first frame of each segment; null when one of them cannot be located, or is no keyframe. */
export function iFramesOf(segments: Segment[]): PlaylistSegment[] | null {
  const frames = segments.flatMap(({ name, durationSeconds, first }) =>
    first && first.isSync !== false ? [{ uri: name, durationSeconds, range: first }] : [],
  );
  return frames.length === segments.length ? frames : null;
}

/** Lists each size once for each group of audio, the group of stereo first: players begin with the first variant. */
export function master(
  media: SizedMedia & Pick<ManifestData, "listedFirst" | "prefersFirst">,
  groups: readonly AudioGroup[],
): string {
  const { plan, spec, videos, audios, target, listedFirst = [] } = media;
  const scores = media.prefersFirst ? scoresOf(videos) : null;
  const isGrouped = audios.length > 0 && (videos.length > 0 || audios.length > 1);
  const names = [...listedFirst, ...videos.map(({ name }) => name), ...audios.map(({ name }) => name)];
  const ordered = (renditions: Rendition[]) =>
    renditions.toSorted((a, b) => names.indexOf(a.name) - names.indexOf(b.name));
  // Without HDR all of them have the same range, and nothing to choose.
  const hasHdr = videos.some(({ init }) => init.hdr);
  const rangeOf = (hdr: HdrFormat | null) => (hasHdr ? (hdr ? HDR_SIGNALS[hdr].videoRange : SDR_RANGE) : undefined);
  return masterPlaylist({
    version: spec.hls.version,
    isIndependent: videos.every(({ segments }) => isIndependent(segments)),
    audio: isGrouped ? groups.flatMap((group) => mediaOf(plan, spec, group)) : [],
    variants: groups.flatMap((group) =>
      ordered(toRenditions(media, group)).map((one) => ({
        uri: one.playlist_path,
        bandwidth: one.bandwidth,
        averageBandwidth: one.average_bandwidth,
        codecs: one.codecs.split(","),
        width: one.width ?? undefined,
        height: one.height ?? undefined,
        frameRate: one.frame_rate ?? undefined,
        videoRange: rangeOf(one.hdr),
        score: scores?.get(one.name),
        audioGroup: isGrouped ? group.id : undefined,
      })),
    ),
    frames: videos.flatMap(({ name, init, segments }) => {
      const frames = iFramesOf(segments);
      if (!frames) return [];
      const sizes = frames.map(({ durationSeconds, range }) => ({ bytes: range?.bytes ?? 0, durationSeconds }));
      const { peak, average } = bitRates(sizes, target);
      const uri = `${name}/${spec.hls.iframe_playlist}`;
      const { codec, width, height } = init;
      const videoRange = rangeOf(init.hdr);
      return [{ uri, bandwidth: peak, averageBandwidth: average, codecs: [codec], width, height, videoRange }];
    }),
  });
}

/** Higher for each rendition of the first codec than for all others, and within a codec for a larger one. */
const scoresOf = (videos: readonly Written[]): ReadonlyMap<string, number> => {
  const ofCodec = Map.groupBy(videos, ({ init }) => codecNameOf(init.codec));
  if (ofCodec.size < 2) return new Map();
  const ascending = [...ofCodec.values()].flat().toReversed();
  return new Map(ascending.map(({ name }, index) => [name, index + 1]));
};

function mediaOf(plan: ManifestPlan, spec: EncodingSpec, { id, audios }: AudioGroup): AudioRendition[] {
  const titles = new Set<string>();
  return audios.map((one, index) => {
    const language = languageOf(plan, one);
    // 4.3.4.1.1: names are unique within their group.
    let name = titleOf(language, index);
    if (titles.has(name)) name = `${name} (${index + 1})`;
    titles.add(name);
    const uri = `${one.name}/${spec.hls.playlist}`;
    return { group: id, name, language, channels: channelsOf(plan, one), isDefault: index === 0, uri };
  });
}
