import { join } from "node:path";
import { codecNameOf, HDR_SIGNALS, type HdrFormat, type Rate } from "#lib/codecs";
import {
  type AudioRendition,
  bitRates,
  type MpdRepresentation,
  type MpdSet,
  masterPlaylist,
  mediaPlaylist,
  type PlaylistSegment,
  staticMpd,
} from "#lib/manifests";
import { STEREO_CHANNELS } from "#protocol/audio-renditions.ts";
import { INIT_NAME } from "./arguments.ts";
import { type AudioGroup, audioGroups, surroundOf } from "./audio-groups.ts";
import type { EncodingSpec } from "./encoding-spec.ts";
import { MediaError } from "./error.ts";
import type { PlannedRendition } from "./ladder.ts";
import { MPD_TEMPLATES, videoSetsOf } from "./mpd-sets.ts";
import type { Segment, Written } from "./package.ts";
import type { PlannedAudio } from "./plan.ts";
import type { AudioTrack } from "./probe.ts";
import { statResult, writeResult } from "./results.ts";
import type { Storyboard } from "./storyboard.ts";

export type Rendition = {
  name: string;
  /** Null for audio-only sources. */
  width: number | null;
  height: number | null;
  /** bit/s, peak and average, including the audio that belongs to it. */
  bandwidth: number;
  average_bandwidth: number;
  codecs: string;
  frame_rate: number | null;
  /** Null: standard dynamic range. */
  hdr: HdrFormat | null;
  /** The size of its segments and init segment; null while they are not encoded. */
  bytes: number | null;
  /** Estimated quality, 0 to 100; only where the renditions were chosen for the source (per-title/score.ts). */
  score?: number;
  /** Relative to the master playlist. */
  playlist_path: string;
};

/** The largest one, which may be an original of another codec than the first. */
export const largestOf = (renditions: readonly Rendition[]): Rendition | undefined =>
  renditions.reduce<Rendition | undefined>(
    (most, one) => (most && (one.width ?? 0) <= (most.width ?? 0) ? most : one),
    undefined,
  );

/** What manifests state of a plan. */
export type ManifestPlan = {
  video: { rate: Rate; renditions?: readonly Pick<PlannedRendition, "name" | "score">[] } | null;
  audio: readonly (Pick<PlannedAudio, "name" | "channels" | "surroundOf"> & { track: Pick<AudioTrack, "language"> })[];
};

/** `audioRenditions`: those that `renditions` do not contain, which are of video if there is any. */
export type Packaged = {
  renditions: Rendition[];
  audioRenditions: Rendition[];
  durationSeconds: number;
  files: string[];
  bytes: number;
};

/**
 * Writes both manifests and the media playlists over the segments in `outDir`. Throws MediaError `encode_failed` when
 * the renditions are not aligned.
 */
export async function writeManifests(given: {
  outDir: string;
  plan: ManifestPlan;
  spec: EncodingSpec;
  videos: Written[];
  audios: Written[];
  names: { manifest: string; dash: string };
  storyboard: Storyboard | null;
  /** Renditions that the master playlist lists first, in this order: players begin with the first one. */
  listedFirst?: readonly string[];
  /** Players are to begin with the first codec, although others need fewer bits: these are encoded last, or on request. */
  prefersFirst?: boolean;
  /** For a part of longer media: the number of its first segment, and where that begins. */
  begins?: { number: number; seconds: number } | undefined;
  /** The media files are not those of ffmpeg. */
  areOurs?: boolean;
}): Promise<Packaged> {
  const options = {
    ...given,
    audios: given.audios.map((one) => untilEndOf(one, given.videos[0])),
    listedFirst: given.listedFirst ?? ladderFirst(given),
    prefersFirst: given.prefersFirst || hasLoneCodec(given.videos),
  };
  const { outDir, plan, spec, videos, audios, names, areOurs } = options;
  const all = [...videos, ...audios];
  const [first] = videos;
  // Players switch at segment boundaries; an unaligned rendition would stutter at every switch.
  if (first && videos.some(({ segments }) => !isAligned(segments, first.segments))) {
    throw new MediaError("encode_failed", "The segment boundaries of the renditions differ.", true);
  }
  const target = Math.max(
    1,
    ...all.flatMap(({ segments }) => segments.map((segment) => Math.round(segment.durationSeconds))),
  );
  const durationSeconds = Math.max(...(first ? [first] : audios).map((one) => one.durationSeconds));

  const { version, playlist } = spec.hls;
  const files: string[] = [];
  const write = async (path: string, text: string) => {
    await writeResult(join(outDir, path), text);
    files.push(path);
  };
  for (const { name, init, segments } of all) {
    const text = mediaPlaylist({
      version,
      initUri: INIT_NAME,
      targetDurationSeconds: target,
      segments: segments.map((segment) => ({ uri: segment.name, durationSeconds: segment.durationSeconds })),
      isIndependent: isIndependent(segments),
    });
    await write(`${name}/${playlist}`, text);
    const frames = init.width ? iFramesOf(segments) : null;
    const list = { version, initUri: INIT_NAME, targetDurationSeconds: target, isIFramesOnly: true };
    if (frames) await write(`${name}/${spec.hls.iframe_playlist}`, mediaPlaylist({ ...list, segments: frames }));
    files.push(`${name}/${INIT_NAME}`, ...segments.map((segment) => `${name}/${segment.name}`));
  }
  const initBytes = new Map<string, number>();
  for (const { name } of all) initBytes.set(name, (await statResult(join(outDir, name, INIT_NAME), { areOurs })).size);
  const sized = { plan, spec, videos, audios, target, initBytes };
  const groups = audioGroups(plan, audios, spec.audio.group);
  const renditions = toRenditions(sized, groups[0]);
  const audioRenditions = audioOf(sized).filter(({ name }) => renditions.every((one) => one.name !== name));
  await write(names.manifest, master({ ...options, ...sized }, groups));
  await write(names.dash, mpd(options, target, Math.max(...all.map((one) => one.durationSeconds))));
  const sizes = await Promise.all(
    files.filter((file) => !file.endsWith(".m4s")).map((file) => statResult(join(outDir, file), { areOurs })),
  );
  const bytes =
    sizes.reduce((sum, { size }) => sum + size, 0) +
    all.flatMap((one) => one.segments).reduce((sum, s) => sum + s.bytes, 0);
  return { renditions, audioRenditions, durationSeconds, files, bytes };
}

/**
 * Omits segments that begin after the end of the video, such as the last 21 ms of audio packets: a player cannot buffer
 * any part of them, and hls.js then waits for them forever and never fires `ended`.
 */
function untilEndOf(audio: Written, video: Written | undefined): Written {
  if (!video) return audio;
  let durationSeconds = 0;
  const segments = audio.segments.filter((segment) => {
    const isWithin = durationSeconds < video.durationSeconds - 0.001;
    if (isWithin) durationSeconds += segment.durationSeconds;
    return isWithin;
  });
  return segments.length === audio.segments.length ? audio : { ...audio, segments, durationSeconds };
}

/** Players begin with the first variant: not with an original that is larger than the ladder, which few of them can load. */
function ladderFirst({ videos, spec: { video } }: Pick<ManifestData, "videos" | "spec">): string[] {
  const primary = videosOfFirstCodec(videos);
  const isAbove = ({ init: { width, height } }: Written) =>
    Math.min(width, height) > (video.ladder[0]?.height ?? 0) || width * height > video.max_pixels;
  return primary.some(isAbove)
    ? [...primary.filter((one) => !isAbove(one)), ...primary.filter(isAbove)].map(({ name }) => name)
    : [];
}

const videosOfFirstCodec = (videos: readonly Written[]): Written[] =>
  videos.filter(({ init }) => codecNameOf(init.codec) === codecNameOf(videos[0]?.init.codec ?? ""));

/**
 * Whether a codec has a single rendition where the first one has several, such as an original that was copied. Players do not
 * switch between codecs: those that prefer it could not adapt to the bandwidth.
 */
function hasLoneCodec(videos: readonly Written[]): boolean {
  const [first, ...others] = Map.groupBy(videos, ({ init }) => codecNameOf(init.codec)).values();
  return (first?.length ?? 0) > 1 && others.some(({ length }) => length === 1);
}

const isAligned = (a: Segment[], b: Segment[]) =>
  a.length === b.length &&
  a.every((segment, i) => Math.abs(segment.durationSeconds - (b[i]?.durationSeconds ?? 0)) < 0.001);

/** draft-pantos-hls-rfc8216bis, 4.4.6.2. */
const SDR_RANGE = "SDR";
/** Values of ISO/IEC 23091-2 for the HDR that is kept: ITU-R BT.2100 in Y'CbCr. */
const BT2020_CICP = { primaries: 9, matrix: 9 };

type ManifestData = {
  plan: ManifestPlan;
  spec: EncodingSpec;
  videos: Written[];
  audios: Written[];
  storyboard: Storyboard | null;
  listedFirst?: readonly string[];
  prefersFirst?: boolean;
  begins?: { number: number; seconds: number } | undefined;
};

/** `initBytes`: sizes of init segments by rendition. */
type SizedMedia = Omit<ManifestData, "storyboard" | "listedFirst" | "prefersFirst" | "begins"> & {
  target: number;
  initBytes: ReadonlyMap<string, number>;
};

const bytesOf = ({ name, segments }: Written, { initBytes }: SizedMedia): number =>
  segments.reduce((sum, { bytes }) => sum + bytes, initBytes.get(name) ?? 0);

const audioOf = (media: SizedMedia): Rendition[] =>
  media.audios.map((one) => {
    const { peak, average } = bitRates(one.segments, media.target);
    return {
      name: one.name,
      width: null,
      height: null,
      frame_rate: null,
      hdr: null,
      codecs: one.init.codec,
      bandwidth: Math.ceil(peak),
      average_bandwidth: Math.ceil(average),
      bytes: bytesOf(one, media),
      playlist_path: `${one.name}/${media.spec.hls.playlist}`,
    };
  });

/** The variants of a group, by size; those of audio without video. */
function toRenditions(media: SizedMedia, { audios }: AudioGroup): Rendition[] {
  const { plan, spec, videos, target } = media;
  const sound = audios.map((one) => ({ codec: one.init.codec, ...bitRates(one.segments, target) }));
  const audioPeak = Math.max(0, ...sound.map(({ peak }) => peak));
  const audioAverage = Math.max(0, ...sound.map(({ average }) => average));
  const audioCodecs = [...new Set(sound.map(({ codec }) => codec))];
  const rate = plan.video ? Math.round((plan.video.rate.num / plan.video.rate.den) * 1000) / 1000 : null;
  const withAudio = videos.map((one) => {
    const { peak, average } = bitRates(one.segments, target);
    const score = plan.video?.renditions?.find(({ name }) => name === one.name)?.score;
    return {
      name: one.name,
      width: one.init.width,
      height: one.init.height,
      bandwidth: Math.ceil(peak + audioPeak),
      average_bandwidth: Math.ceil(average + audioAverage),
      codecs: [one.init.codec, ...audioCodecs].join(","),
      frame_rate: rate,
      hdr: one.init.hdr,
      bytes: bytesOf(one, media),
      ...(score !== undefined && { score }),
      playlist_path: `${one.name}/${spec.hls.playlist}`,
    };
  });
  if (withAudio.length) return withAudio;
  const [main] = audios;
  if (!main) return [];
  return [
    {
      name: main.name,
      width: null,
      height: null,
      bandwidth: Math.ceil(audioPeak),
      average_bandwidth: Math.ceil(audioAverage),
      codecs: audioCodecs.join(","),
      frame_rate: null,
      hdr: null,
      bytes: bytesOf(main, media),
      playlist_path: `${main.name}/${spec.hls.playlist}`,
    },
  ];
}

/** Whether all segments begin with a keyframe: a live stream with rare keyframes has others. */
const isIndependent = (segments: readonly Segment[]) => segments.every(({ first }) => first?.isSync !== false);

/** The first frame of each segment; null when one of them cannot be located, or is no keyframe. */
function iFramesOf(segments: Segment[]): PlaylistSegment[] | null {
  const frames = segments.flatMap(({ name, durationSeconds, first }) =>
    first && first.isSync !== false ? [{ uri: name, durationSeconds, range: first }] : [],
  );
  return frames.length === segments.length ? frames : null;
}

/** Lists each size once for each group, those of stereo first: players begin with the first variant. */
function master(
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
    pictures: videos.flatMap(({ name, init, segments }) => {
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

function mpd(
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

const channelsOf = (plan: ManifestPlan, one: Written): number =>
  plan.audio.find(({ name }) => name === one.name)?.channels ?? STEREO_CHANNELS;

const languageOf = (plan: ManifestPlan, one: Written) => {
  const language = plan.audio.find(({ name }) => name === one.name)?.track.language;
  try {
    // RFC 5646 uses "en" where containers have "eng".
    return language ? (Intl.getCanonicalLocales(language)[0] ?? null) : null;
  } catch {
    return null;
  }
};

function titleOf(language: string | null, index: number): string {
  const name = language ? new Intl.DisplayNames(["en"], { type: "language" }).of(language) : undefined;
  return name && name !== language ? name : `Audio ${index + 1}`;
}
