import { HttpError } from "#lib/base";
import type { LiveMpd } from "#lib/manifests";
import { contains, type Directives, requireNear } from "./directives.ts";
import { checkEvent, type GapEvent, type InitEvent, type PartEvent, type SegmentEvent } from "./events.ts";
import type { LivePlaylist } from "./live-playlist.ts";
import { Manifests } from "./manifest.ts";
import { renderMediaPlaylist } from "./media-playlist.ts";
import {
  type CaptionRendition,
  type LiveVariant,
  renderMultivariantPlaylist,
  variantsOf,
} from "./multivariant-playlist.ts";
import type { PartLocation } from "./part-list.ts";
import { RenditionPeriods, type RenditionsFrom } from "./rendition-periods.ts";
import { LONG_TARGET_SECONDS, MAX_TARGET_SECONDS, targetOf } from "./target-duration.ts";
import type { ListedTrack, TimelineFacts, TimelineOptions, TimelineState } from "./timeline-types.ts";
import { type Segment, TrackWindow } from "./track-window.ts";
import { INTERRUPTED_WAIT, WAIT, Waiters } from "./waiters.ts";
import { WallClock } from "./wall-clock.ts";

const MAX_TRACKS = 16;
const MAX_WAITERS = 10_000;

/**
 * The playlists of a stream: it takes the events of the packager, and answers requests for playlists and parts. Tracks
 * share the media timeline. The events throw a RangeError when they contradict each other; requests throw an HttpError.
 */
export class LiveTimeline {
  readonly #options: TimelineOptions;
  readonly #tracks = new Map<string, TrackWindow>();
  readonly #waiters: Waiters;
  /** Rendered playlists of the current state. */
  readonly #rendered = new Map<string, LivePlaylist>();
  readonly #clock: WallClock;
  readonly #manifests = new Manifests();
  #encoded: readonly string[] = [];
  readonly #periods = new RenditionPeriods();
  #targetSeconds: number | null = null;
  #segmentsOver = 0;
  /** 4.4.3.3: tracks must agree on the discontinuity sequence, those that begin later too. */
  #discontinuities = 0;
  #isInterrupted = false;
  #isEnded = false;

  constructor(options: TimelineOptions) {
    if (!(options.partTargetSeconds >= 0.01) || !(options.segmentTargetSeconds >= options.partTargetSeconds))
      throw new RangeError("A live timeline needs partTargetSeconds from 0.01, and longer segments.");
    this.#options = options;
    this.#clock = new WallClock(options.startedAtMs);
    this.#waiters = new Waiters(options.maxWaiters ?? MAX_WAITERS);
    if (options.state) this.#restore(options.state);
  }

  #restore({ tracks, targetSeconds, discontinuities, anchor, isInterrupted, ...state }: TimelineState): void {
    for (const { init } of tracks) this.init(init);
    this.#encoded = state.encoded;
    if (state.renditions) this.#periods.add(state.renditions, 0);
    // Reports of earlier versions do not say from which segment on.
    const isDependent = tracks.some(({ isIndependent }) => isIndependent === false);
    const dependent = state.dependent ?? (isDependent ? { segment: 0, startSeconds: 0 } : null);
    if (dependent) this.#periods.depend(dependent);
    for (const track of tracks) this.#tracks.get(track.init.track)?.restore(track, discontinuities);
    this.#targetSeconds = targetSeconds;
    this.#discontinuities = discontinuities;
    // The anchor of what follows an interruption is known when the publisher is back.
    this.#clock.restore(discontinuities - (isInterrupted && discontinuities > 0 ? 1 : 0), anchor);
    this.#isInterrupted = isInterrupted;
  }

  /** Before the next event. */
  state(): TimelineState {
    return {
      tracks: [...this.#tracks.values()].map((track) => track.state()),
      encoded: this.#encoded,
      renditions: this.#periods.last,
      dependent: this.#periods.dependent,
      targetSeconds: this.#targetSeconds,
      discontinuities: this.#discontinuities,
      anchor: this.#clock.anchor,
      isInterrupted: this.#isInterrupted,
    };
  }

  init(event: InitEvent): void {
    this.#requireRunning();
    if (this.#tracks.has(event.track)) throw new RangeError(`Track ${event.track} has been added before.`);
    if (this.#tracks.size >= MAX_TRACKS) throw new RangeError(`A stream has at most ${MAX_TRACKS} tracks.`);
    const source = event.isEncoded ? this.#published.find((one) => one.init.kind === event.kind) : null;
    if (source === undefined) throw new RangeError(`Track ${event.track} is encoded from nothing.`);
    const track = new TrackWindow(event, this.#options, source);
    track.discontinuitySequence = this.#discontinuities;
    this.#tracks.set(event.track, track);
    this.#changed();
  }

  part(event: PartEvent): void {
    const track = this.#trackOfEvent(event);
    const isListed = track.addPart(event, this.#clock.wallMs(event.startSeconds));
    if (isListed && this.#options.isLowLatency) this.#partsChanged();
  }

  segment(event: SegmentEvent): void {
    const track = this.#trackOfEvent(event);
    const { durationSeconds, startSeconds, isIndependent } = event;
    const target = this.#targetSeconds ?? targetOf(Math.max(durationSeconds, this.#options.segmentTargetSeconds));
    track.complete(event, this.#clock.wallMs(startSeconds), target);
    if (isIndependent === false && !track.isEncoded) this.#periods.depend(event);
    this.#periods.completed(track);
    this.#targetSeconds = target;
    if (Math.round(durationSeconds) > target) this.#segmentsOver++;
    this.#changed();
  }

  /** An encoded track does not have a segment that the publisher's has. */
  gap({ track: name, segment }: GapEvent): void {
    this.#requireRunning();
    const track = this.#tracks.get(name);
    if (!track || this.#targetSeconds === null) throw new RangeError(`Track ${name} has no segment.`);
    track.gap(segment, this.#targetSeconds);
    this.#periods.completed(track);
    this.#changed();
  }

  /** The names of all encoded tracks that are being encoded: viewers who begin may choose them, if they have a segment. */
  encode(tracks: readonly string[]): void {
    this.#encoded = tracks;
    this.#changed();
  }

  /** The DASH manifest lists encoded tracks, while `encode` is for those who begin with HLS. */
  list(renditions: RenditionsFrom): void {
    this.#requireRunning();
    this.#periods.add(renditions, Math.min(...this.#published.map(({ firstSeconds }) => firstSeconds)));
    this.#changed();
  }

  /**
   * The publisher is disconnected. All playlists announce the discontinuity now. Call it when the packager has reported
   * what it had: segments that are open may still be completed, but one that begins later is after the discontinuity.
   */
  interrupted(): void {
    this.#requireRunning();
    this.#isInterrupted = true;
    const tracks = this.#published;
    // Without media since the last one it is the same discontinuity.
    if (tracks.some(({ nextNumber, isDiscontinuityNext }) => nextNumber !== null && !isDiscontinuityNext)) {
      this.#discontinuities++;
      for (const track of tracks) {
        if (track.nextNumber === null) track.discontinuitySequence = this.#discontinuities;
        else track.isDiscontinuityNext = true;
      }
    }
    this.#changed();
  }

  /** The publisher is back. `atMs` is the time of day of the media that follows, which continues the media timeline. */
  resumed(atMs: number): void {
    this.#requireRunning();
    if (!this.#isInterrupted) throw new RangeError("The stream is not interrupted.");
    this.#isInterrupted = false;
    const tracks = this.#published;
    const seconds = Math.max(0, ...tracks.map(({ endSeconds }) => endSeconds));
    const oldest = Math.min(...tracks.map(({ firstSeconds }) => firstSeconds));
    this.#clock.resume(this.#discontinuities, { wallMs: atMs, seconds }, oldest);
    this.#changed();
  }

  /** No event follows. Every playlist ends, and waiting requests are answered with it. */
  ended(): void {
    this.#requireRunning();
    this.#isEnded = true;
    this.#periods.end(this.#tracks);
    this.#changed();
  }

  facts(): TimelineFacts {
    const tracks = [...this.#tracks.values()];
    const target = this.#targetSeconds ?? 0;
    return {
      targetSeconds: this.#targetSeconds,
      isEnded: this.#isEnded,
      isTargetLong: target > LONG_TARGET_SECONDS,
      isTargetTooLong: target > MAX_TARGET_SECONDS,
      segmentsOver: this.#segmentsOver,
      partsOver: tracks.reduce((sum, { partsOver }) => sum + partsOver, 0),
      partsUnder: tracks.reduce((sum, { partsUnder }) => sum + partsUnder, 0),
      waiters: this.#waiters.size,
    };
  }

  /** File name of a media playlist in the folder of its track. */
  get playlistName(): string {
    return this.#options.playlistName;
  }

  /** The track whose segments captions follow: the video of the publisher, or its audio. */
  get captioned(): TrackWindow | null {
    return this.#published.find(({ init }) => init.kind === "video") ?? this.#published[0] ?? null;
  }

  /** The newest complete segment of the publisher's video; null without one. */
  get poster(): { track: string; segment: number } | null {
    const video = this.#published.find(({ init, length }) => init.kind === "video" && length > 0);
    return video ? { track: video.init.track, segment: video.lastNumber } : null;
  }

  hasTrack(name: string): boolean {
    return this.#tracks.has(name);
  }

  /** Whether a track is encoded by a worker. */
  isEncoded(name: string): boolean {
    return this.#tracks.get(name)?.isEncoded === true;
  }

  /**
   * Whether clients may request that complete segment: a playlist lists it, or did until recently. `ahead`: so many
   * segments after the last one may be listed elsewhere.
   */
  hasSegment(name: string, number: number, ahead = 0): boolean {
    const track = this.#tracks.get(name);
    if (track === undefined || track.length === 0) return false;
    return number >= track.firstAvailable && number <= track.lastNumber + ahead;
  }

  /** The complete segments that playlists list of the tracks of the publisher, and their init segments. */
  *listed(): Generator<ListedTrack> {
    for (const track of this.#published) {
      const { init, firstNumber, length } = track;
      const segments = Array.from({ length }, (_, index): SegmentEvent => {
        const segment = firstNumber + index;
        const { bytes, durationSeconds, startSeconds, name } = track.segment(segment) as Segment;
        return { track: init.track, segment, bytes, durationSeconds, startSeconds, name };
      });
      yield { init, segments };
    }
  }

  /** Whether the playlist of a track contains what the directives ask for: later ones differ only in what follows. */
  hasAnswer(name: string, directives: Directives): boolean {
    const track = this.#track(name);
    return directives.msn !== null && track.length > 0 && contains(track, this.#supported(directives));
  }

  /** Without low latency no parts are listed: the segment is what a request waits for. */
  #supported(directives: Directives): Directives {
    return this.#options.isLowLatency ? directives : { ...directives, part: null };
  }

  /** The variants of the multivariant playlist; empty until the first segment is complete. */
  variants(): LiveVariant[] {
    return this.#targetSeconds === null ? [] : variantsOf(this.#listed, this.#targetSeconds);
  }

  /**
   * The media playlist of a track as it is now; null until the track has a complete segment. It is rendered once for each
   * state, whatever the number of requests.
   */
  mediaPlaylist(name: string, { skip = false } = {}): LivePlaylist | null {
    const track = this.#track(name);
    if (this.#targetSeconds === null || track.length === 0) return null;
    const isCaptioned = this.#captions.length > 0;
    const key = `${skip ? "delta" : "full"} ${isCaptioned} ${name}`;
    const known = this.#rendered.get(key);
    if (known) return known;
    const { isLowLatency, partTargetSeconds, playlistName } = this.#options;
    const fresh = renderMediaPlaylist(track, {
      isLowLatency,
      skip,
      partTargetSeconds,
      playlistName,
      isCaptioned,
      targetSeconds: this.#targetSeconds,
      isInterrupted: this.#isInterrupted,
      isEnded: this.#isEnded,
      others: this.#listed.filter((other) => other !== track),
    });
    this.#rendered.set(key, fresh);
    return fresh;
  }

  /**
   * Answers a request for a media playlist: waits until it contains what the directives ask for (6.2.5.2), but at most
   * three target durations. HttpError: 400 for a playlist that is too far ahead, 404 for an unknown track, 503. When the
   * publisher disconnects, the playlist with the discontinuity is the answer; requests in an interruption get it too, but
   * wait for half a target duration.
   */
  async waitForPlaylist(name: string, requested: Directives, signal?: AbortSignal): Promise<LivePlaylist> {
    const track = this.#track(name);
    const { partTargetSeconds } = this.#options;
    const directives = this.#supported(requested);
    const isInterruptedNow = this.#isInterrupted;
    const current = () => this.mediaPlaylist(name, directives);
    const check = () => {
      if (track.length > 0 && !this.#isEnded) {
        requireNear(track, directives, partTargetSeconds);
        const hasInterruption = this.#isInterrupted && !isInterruptedNow;
        if (!contains(track, directives) && !hasInterruption) return null;
      }
      const playlist = current();
      if (!playlist && this.#isEnded) throw notFound("playlist");
      return playlist;
    };
    if (!isInterruptedNow) return this.#wait(check, signal);
    const timeoutMs = this.#timeoutMs(INTERRUPTED_WAIT);
    return this.#waiters.wait(check, { timeoutMs, atDeadline: current, signal });
  }

  /**
   * The multivariant playlist, once every track has a complete segment. Its URIs begin with `prefix`. Throws as
   * `waitForPlaylist` does.
   */
  async waitForMultivariantPlaylist(signal?: AbortSignal, prefix = ""): Promise<{ text: string }> {
    const options = { playlistName: this.#options.playlistName, prefix, captions: this.#captions };
    const render = (targetSeconds: number) => renderMultivariantPlaylist(this.#listed, { ...options, targetSeconds });
    return this.#waitForTracks((_, targetSeconds) => ({ text: render(targetSeconds) }), signal);
  }

  /**
   * The DASH manifest as it is now, once every track has a complete segment. It is rendered once for each state. Throws as
   * `waitForPlaylist` does.
   */
  async waitForManifest(signal?: AbortSignal): Promise<LiveMpd> {
    const { startedAtMs, dvrSeconds } = this.#options;
    return this.#waitForTracks((tracks, targetSeconds) => {
      const encoded = [...this.#tracks.values()].filter(({ isEncoded, length }) => isEncoded && length > 0);
      return this.#manifests.of([...tracks, ...encoded], {
        startedAtMs,
        dvrSeconds,
        targetSeconds,
        periods: () => this.#periods.divide(this.#clock.periods),
        isEnded: this.#isEnded,
        revision: this.#periods.revision,
        captions: this.#captions,
      });
    }, signal);
  }

  /** Waits until every track of the publisher has a complete segment, and `render` a result for those that have one. */
  #waitForTracks<T extends object>(
    render: (tracks: TrackWindow[], targetSeconds: number) => T | null,
    signal?: AbortSignal,
  ): Promise<T> {
    return this.#wait(() => {
      const tracks = this.#published.filter(({ length }) => length > 0);
      const isComplete = tracks.length === this.#published.length || this.#isEnded;
      const rendered = this.#targetSeconds !== null && isComplete ? render(tracks, this.#targetSeconds) : null;
      if (!rendered && this.#isEnded) throw notFound("playlist");
      return rendered;
    }, signal);
  }

  /**
   * Where a part is; waits for the one that EXT-X-PRELOAD-HINT announces. HttpError: 404 for parts that are over seven
   * target durations old, will not exist or are further ahead; 503.
   */
  async waitForPart(
    name: string,
    { segment, part }: { segment: number; part: number },
    signal?: AbortSignal,
  ): Promise<PartLocation> {
    const track = this.#track(name);
    return this.#wait(() => {
      const known = track.parts(segment)[part];
      if (known) return { segment, offset: known.offset, bytes: known.bytes };
      const next = track.nextPart;
      const isExpected = !this.#isEnded && (!this.#isInterrupted || track.open !== null);
      if (!isExpected || next?.segment !== segment || next.part !== part) throw notFound("part");
      return null;
    }, signal);
  }

  #wait<T extends object>(check: () => T | null, signal?: AbortSignal): Promise<T> {
    return this.#waiters.wait(check, { timeoutMs: this.#timeoutMs(WAIT), signal });
  }

  #timeoutMs(targets: number): number {
    return targets * (this.#targetSeconds ?? Math.max(this.#options.segmentTargetSeconds, LONG_TARGET_SECONDS)) * 1000;
  }

  get #captions(): readonly CaptionRendition[] {
    return this.#options.captions?.renditions ?? [];
  }

  /** The tracks of the publisher. */
  get #published(): TrackWindow[] {
    return [...this.#tracks.values()].filter(({ isEncoded }) => !isEncoded);
  }

  /** The tracks that viewers may choose, once they have a segment. */
  get #listed(): TrackWindow[] {
    return [...this.#published, ...this.#encoded.flatMap((name) => this.#tracks.get(name) ?? [])];
  }

  #changed(): void {
    this.#manifests.changed();
    this.#partsChanged();
  }

  #partsChanged(): void {
    this.#rendered.clear();
    this.#waiters.wake();
  }

  #track(name: string): TrackWindow {
    const track = this.#tracks.get(name);
    if (!track) throw notFound("track");
    return track;
  }

  #trackOfEvent(event: PartEvent | SegmentEvent): TrackWindow {
    this.#requireRunning();
    checkEvent(event);
    const track = this.#tracks.get(event.track);
    if (!track) throw new RangeError(`Track ${event.track} has no initialization segment.`);
    return track;
  }

  #requireRunning(): void {
    if (this.#isEnded) throw new RangeError("The stream has ended.");
  }
}

const notFound = (what: string) => new HttpError(404, "not_found", `No such ${what} in the live stream.`);
