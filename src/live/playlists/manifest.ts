import { reducedRate } from "#lib/codecs";
import { LiveMpd, type LivePeriod, type MpdRepresentation, type MpdSet } from "#lib/manifests";
import { MPD_TEMPLATES, videoSetsOf } from "#media/mpd-sets.ts";
import { STEREO_CHANNELS } from "#protocol/audio-renditions.ts";
import { VIDEO_TIMESCALE } from "../cmaf/frame-clock.ts";
import { bitRatesOf, type CaptionRendition } from "./multivariant-playlist.ts";
import { LIVE_TIME } from "./names.ts";
import type { ManifestPeriod } from "./rendition-periods.ts";
import { MIN_WINDOW, type Segment, type TrackWindow } from "./track-window.ts";
import { timeIn } from "./wall-clock.ts";

/** In target durations. */
const UPDATE = 0.5;
/**
 * In target durations. A player can request a segment when it is complete (1 at most), an update lists it (0.5), caches have
 * that update (0.5), and servers that read it from storage have read it. The rest is what the player buffers.
 */
const DELAY = 4;
/** Segments are rounded before they are compared with the target duration. */
const ROUNDING_SECONDS = 0.5;
/** The timescale of audio whose sample rate is not known: any unit of time can be stated. */
const ANY_TIMESCALE = 48_000;
/** In bit/s: more than closed captions have. */
const CAPTION_BANDWIDTH = 1000;

export type ManifestOptions = {
  startedAtMs: number;
  dvrSeconds: number;
  targetSeconds: number;
  captions: readonly CaptionRendition[];
  /** Called when the manifest is rendered. */
  periods: () => readonly ManifestPeriod[];
  /** How often they have changed since the end of all segments did. */
  revision: number;
  isEnded: boolean;
};

/** The segments of a track in a period. */
type Run = { number: number; segments: Segment[] };
type Listed = { track: TrackWindow; run: Run };

/** The manifests of a stream. Each is rendered once, whatever the number of requests. */
export class Manifests {
  #current: LiveMpd | null = null;
  /** In bit/s, by track: measured once, because updates must not change a representation. */
  readonly #bandwidths = new Map<string, number>();

  /** Complete segments, or periods, have changed. */
  changed(): void {
    this.#current = null;
  }

  /** The current one; null as for `render`. */
  of(tracks: readonly TrackWindow[], options: ManifestOptions): LiveMpd | null {
    const { targetSeconds } = options;
    for (const track of tracks) {
      const { track: name } = track.init;
      if (!this.#bandwidths.has(name)) this.#bandwidths.set(name, bitRatesOf(track, targetSeconds).peak);
    }
    this.#current ??= render(tracks, options, this.#bandwidths);
    return this.#current;
  }
}

/**
 * The DASH manifest over the segments that the playlists list, of tracks that have one: a period for each uninterrupted
 * piece with the same renditions. Segments of the publisher have any length, and that of the next one is not known, so all
 * complete segments are listed, and no manifest lists one in progress. Linear in the number of segments. Null when there is no
 * period that all of its tracks have.
 */
function render(
  tracks: readonly TrackWindow[],
  options: ManifestOptions,
  bandwidths: ReadonlyMap<string, number>,
): LiveMpd | null {
  const { startedAtMs, dvrSeconds, targetSeconds, isEnded, captions } = options;
  const all = options.periods();
  const runs = new Map(tracks.map((track) => [track, runsOf(track, all)]));
  const listedIn = (period: ManifestPeriod) =>
    tracks
      .filter(({ isEncoded, init }) => !isEncoded || period.renditions.includes(init.track))
      .map((track) => ({ track, run: runs.get(track)?.get(period) }));
  // A player creates the buffers of a period when it begins: one that lacks a track would stay without it.
  const common = all.filter((period) => listedIn(period).every(({ run }) => run));
  const last = common.at(-1);
  const current = all.at(-1);
  if (!last || !current) return null;
  const periods = common.map((period): LivePeriod => {
    const startSeconds = (period.wallMs - startedAtMs) / 1000;
    return {
      id: period.id,
      startSeconds,
      sets: setsOf(listedIn(period) as Listed[], period, { bandwidths, captions }),
    };
  });
  const end = Math.max(...(listedIn(last) as Listed[]).map(({ run }) => endOf(run.segments.at(-1) as Segment)));
  const complete = Math.max(...tracks.filter(({ isEncoded }) => !isEncoded).map((track) => track.completeSeconds));
  return new LiveMpd({
    ...MPD_TEMPLATES,
    startedAtMs,
    periods,
    timeName: LIVE_TIME,
    endSeconds: isEnded ? (timeIn(last, end) - startedAtMs) / 1000 : null,
    // All servers state the same. The end of the stream changes the manifest too.
    publishedAtMs: timeIn(current, complete) + options.revision + (isEnded ? 1 : 0),
    maxSegmentSeconds: targetSeconds + ROUNDING_SECONDS,
    minBufferSeconds: targetSeconds,
    updateSeconds: UPDATE * targetSeconds,
    delaySeconds: DELAY * targetSeconds,
    dvrSeconds: Math.max(dvrSeconds, MIN_WINDOW * targetSeconds),
  });
}

const endOf = ({ startSeconds, durationSeconds }: Segment) => startSeconds + durationSeconds;

/** The segments of each period. Audio begins up to half a packet before its period, so the middle of a segment decides. */
function runsOf(track: TrackWindow, periods: readonly ManifestPeriod[]): Map<ManifestPeriod, Run> {
  const runs = new Map<ManifestPeriod, Run>();
  let index = -1;
  for (let number = track.firstNumber; number <= track.lastNumber; number++) {
    const segment = track.segment(number) as Segment;
    const middle = segment.startSeconds + segment.durationSeconds / 2;
    while (middle >= (periods[index + 1]?.seconds ?? Number.POSITIVE_INFINITY)) index++;
    const period = periods[index];
    if (!period) continue;
    // What an encoded track lacks is not in a period that lists it.
    if (segment.bytes === 0) continue;
    const run = runs.get(period);
    if (run) run.segments.push(segment);
    else runs.set(period, { number, segments: [segment] });
  }
  return runs;
}

function setsOf(
  listed: readonly Listed[],
  period: ManifestPeriod,
  { bandwidths, captions }: { bandwidths: ReadonlyMap<string, number>; captions: readonly CaptionRendition[] },
): MpdSet[] {
  const of = (kind: "video" | "audio") => listed.filter(({ track }) => track.init.kind === kind);
  const base = ({ track, run }: Listed): MpdRepresentation => {
    const { track: id, codec, kind, sampleRate } = track.init;
    const timescale = kind === "video" ? VIDEO_TIMESCALE : (sampleRate ?? ANY_TIMESCALE);
    const bandwidth = bandwidths.get(id) ?? 0;
    const at = (seconds: number) => Math.round(seconds * timescale);
    const segments = run.segments.map((segment) => {
      const start = at(segment.startSeconds);
      return { start, duration: at(endOf(segment)) - start };
    });
    return {
      id,
      bandwidth,
      codec,
      timescale,
      segments,
      isIndependent: track.isEncoded || kind === "audio" || period.isIndependent,
      begins: { number: run.number, time: at(period.seconds) },
    };
  };
  const videos = of("video").map((one) => {
    const { width = 0, height = 0, frameRate } = one.track.init;
    // The shape of the pixels is in the init segment only.
    const video = { width, height, frameRate: frameRate === undefined ? null : fractionOf(frameRate), sar: null };
    return { representation: { ...base(one), video } };
  });
  const audios = of("audio").map((one, index): MpdSet => {
    const { channels = STEREO_CHANNELS, sampleRate = null } = one.track.init;
    const representation = { ...base(one), audio: { sampleRate, channels } };
    return { kind: "audio", language: null, isMain: index === 0, representations: [representation] };
  });
  // Sets that continue in the next period have the same id, their index: renditions of another codec come last.
  const [main, ...others] = videoSetsOf(videos, { prefersFirst: true });
  const captioned = listed.find(({ track }) => track.init.kind === "video" && !track.isEncoded);
  const texts = captioned ? captions.map((one) => textSet(one, base(captioned))) : [];
  return [...(main ? [main] : []), ...audios, ...others, ...texts];
}

const textSet = ({ track, name, language }: CaptionRendition, video: MpdRepresentation): MpdSet => ({
  kind: "text",
  language,
  label: name,
  isMain: false,
  representations: [{ ...video, id: track, bandwidth: CAPTION_BANDWIDTH, isIndependent: true }],
});

/** A frame rate of three decimals as DASH has it (5.3.7.2): `30`, `30000/1001`. */
function fractionOf(frameRate: number): string {
  const ntsc = Math.round(frameRate * 1.001) * 1000;
  const isNtsc = !Number.isInteger(frameRate) && Math.abs(ntsc / 1001 - frameRate) < 0.001;
  const rate = isNtsc ? { num: ntsc, den: 1001 } : reducedRate({ num: Math.round(frameRate * 1000), den: 1000 });
  return rate.den === 1 ? `${rate.num}` : `${rate.num}/${rate.den}`;
}
