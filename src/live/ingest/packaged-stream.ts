import { mkdirSync } from "node:fs";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { randomName, setTimeout } from "#lib/base";
import { type CaptionedCodec, CaptionReader, isCaptioned } from "#lib/closed-captions";
import type { LiveSample, TrackConfig } from "#lib/codecs";
import { WrittenCaptions } from "../captions/written-captions.ts";
import { createPackager, type Packager } from "../cmaf/packager.ts";
import type { Health, Part, SegmentInfo, TrackInfo, TrackKind } from "../cmaf/types.ts";
import { PART_SECONDS } from "../media.ts";
import type { InitEvent, PartEvent, SegmentEvent } from "../playlists/events.ts";
import { finishRecording, type RecordedTracks } from "./finish-recording.ts";
import { initEventOf } from "./init-event.ts";
import type { FinishedRecording, FromIngest, PublishedChannel, WantedClip } from "./messages.ts";
import { keptSeconds, SegmentList } from "./segment-list.ts";

const NAME_CHARACTERS = 24;
/** With keyframes every 2 s, as advised, a segment has one of them. */
const SEGMENT_SECONDS = 2;
/** How much of a stream viewers do not see yet, because a track that its publisher announced is not configured. */
const ANNOUNCED_SECONDS = 15;
/** A configured track that has no packet by this segment may never begin. */
const CONFIGURED_SEGMENTS = 2;

/** How long a recording waits for the captions of the last seconds. */
const LAST_SPEECH_MS = 20_000;
/** The same when the server stops: systemd waits for 20 s, in which the recording is completed too. */
const STOPPING_SPEECH_MS = 3000;

const DEFAULT_TARGETS = { segmentSeconds: SEGMENT_SECONDS, partSeconds: PART_SECONDS };

export type PackagedStreamOptions = {
  channel: PublishedChannel;
  /** Directory of all streams. */
  root: string;
  /** Throws when the disk is full. */
  requireSpace: () => Promise<void>;
  send: (message: FromIngest) => void;
  onHealth: (health: Health) => void;
  /** The publisher sends what this stream cannot continue with. No more samples are accepted. */
  onConfigChanged: () => void;
};

/** Directory of the video on demand that a stream becomes. */
export const recordingFolder = (root: string, name: string) => join(root, `${name}.recording`);

/**
 * One stream of a channel: packages what publishers send, one after another, and reports it. A stream without a part is
 * never reported.
 */
export class PackagedStream {
  readonly name = randomName(NAME_CHARACTERS);
  readonly channel: PublishedChannel;
  /** Nothing more is stored, because the disk or the plan is full. */
  isRecordingStopped = false;
  readonly #options: PackagedStreamOptions;
  readonly #folder: string;
  readonly #packager: Packager;
  readonly #configured = new Set<TrackKind>();
  #announced: ReadonlySet<TrackKind> = new Set();
  readonly #tracks = new Map<TrackKind, TrackInfo>();
  /** What is reported once all tracks are known, and what playlists state of them. */
  #early: FromIngest[] = [];
  readonly #segments: SegmentList;
  #captions: CaptionReader | null = null;
  readonly #writtenCaptions: WrittenCaptions;
  #isOpened = false;
  #startedAtMs = 0;
  #recordedBytes = 0;
  /** The publisher is away, or back without a sample yet. */
  #isInterrupted = false;
  /** Reports of interruptions, in order. */
  #reports: Promise<void> = Promise.resolve();
  #ended: Promise<void> | null = null;
  readonly #speech = Promise.withResolvers<void>();

  constructor(options: PackagedStreamOptions) {
    this.#options = options;
    this.channel = options.channel;
    this.#folder = join(options.root, this.name);
    mkdirSync(this.#folder);
    const { record, dvrSeconds } = options.channel;
    this.#segments = new SegmentList(this.#folder, record ? null : keptSeconds(dvrSeconds));
    this.#writtenCaptions = new WrittenCaptions(this.#folder, options.requireSpace);
    this.#packager = createPackager({
      folder: this.#folder,
      partSeconds: PART_SECONDS,
      targetSegmentSeconds: SEGMENT_SECONDS,
      admit: (bytes) => this.#admit(bytes),
      onInit: (track) => this.#init(track),
      onPart: (part) => this.#part(part),
      onSegment: (segment) => this.#segment(segment),
      onHealth: options.onHealth,
      onFrame: (frame) => this.#captions?.add(frame),
      onSegmentEnd: (seconds) => this.#captions?.endSegment(seconds),
      onConfigChanged: options.onConfigChanged,
    });
  }

  /** For a stream that follows this one: what it has recorded so far is stored later, and counts already. */
  get remainingBytes(): number | null {
    const { maxRecordedBytes } = this.channel;
    return maxRecordedBytes === null ? null : Math.max(0, maxRecordedBytes - this.#recordedBytes);
  }

  /** The publisher sends tracks of these kinds, whose configurations may follow. */
  announce(kinds: readonly TrackKind[]): void {
    this.#announced = new Set(kinds);
  }

  /** Throws ConfigurationInvalid. */
  config(config: TrackConfig): void {
    this.#configured.add(config.kind);
    if (config.kind === "video" && isCaptioned(config.codec)) this.#captions ??= this.#captionReader(config.codec);
    this.#packager.config(config);
  }

  sample(sample: LiveSample): void {
    if (this.#startedAtMs === 0) this.#startedAtMs = Date.now();
    if (this.#packager.followsPause(sample)) {
      this.interrupt();
      this.resume();
    }
    if (this.#isInterrupted) this.#resumed();
    this.#packager.sample(sample);
  }

  /** The connection of the publisher broke. */
  interrupt(): void {
    const written = this.#packager.interrupt();
    if (!this.#isInterrupted) this.#report(written, () => ({ type: "interrupted", stream: this.name }));
    this.#isInterrupted = true;
  }

  /** A publisher continues the stream: configurations and samples follow. */
  resume(): void {
    this.#packager.resume();
  }

  /** The server has written the last captions of its speech. */
  speechWritten(): void {
    this.#speech.resolve();
  }

  /** Ends the stream, and completes its recording. Resolves when all is reported; may be repeated. */
  end(isStopping = false): Promise<void> {
    this.#ended ??= this.#end(isStopping ? STOPPING_SPEECH_MS : LAST_SPEECH_MS);
    return this.#ended;
  }

  /**
   * Makes video on demand of a part of the running stream, in the directory `target`. Null when there is no complete
   * segment of that time. Throws the error of the file system.
   */
  async clip(wanted: WantedClip, target: string): Promise<FinishedRecording | null> {
    const range = this.#segments.rangeOf(wanted);
    await this.#writtenCaptions.settled();
    return (
      range && finishRecording(this.#folder, target, this.#recorded(), { range, admit: this.#options.requireSpace })
    );
  }

  #captionReader(codec: CaptionedCodec): CaptionReader {
    return new CaptionReader({
      codec,
      onService: (service) => this.#send({ type: "service", stream: this.name, service }),
      onCaption: (caption) => {
        this.#send({ type: "caption", stream: this.name, caption });
        this.#writtenCaptions.add(caption);
      },
    });
  }

  #recorded(): RecordedTracks {
    const video = this.#tracks.get("video");
    const audio = this.#tracks.get("audio");
    const { rate } = this.#packager;
    return {
      video: video && rate ? { name: video.name, rate } : null,
      audio: audio ? { name: audio.name, channels: audio.channels } : null,
    };
  }

  async #end(speechMs: number): Promise<void> {
    const recording = await this.#packager.end();
    await Promise.all([this.#reports, this.#writtenCaptions.settled()]);
    if (this.#early.length > 0) this.#open();
    if (!this.#isOpened) return rm(this.#folder, { recursive: true, force: true });
    this.#options.send({ type: "ended", stream: this.name, endedAtMs: Math.max(this.#startedAtMs, Date.now()) });
    const { record, isEncoded: withSource, captionsLive } = this.channel;
    if (record && captionsLive.length > 0) await this.#untilSpeechWritten(speechMs);
    const { requireSpace: admit } = this.#options;
    const target = recordingFolder(this.#options.root, this.name);
    const finished = record ? await finishRecording(this.#folder, target, recording, { admit, withSource }) : null;
    this.#options.send({ type: "finished", stream: this.name, finished });
  }

  /** A server that cannot recognize the rest costs its captions, not the recording. */
  async #untilSpeechWritten(ms: number): Promise<void> {
    const timer = setTimeout(() => this.#speech.resolve(), ms);
    await this.#speech.promise;
    clearTimeout(timer);
  }

  async #admit(bytes: number): Promise<void> {
    await this.#options.requireSpace();
    const { record, maxRecordedBytes } = this.channel;
    if (record) this.#recordedBytes += bytes;
    if (maxRecordedBytes !== null && this.#recordedBytes > maxRecordedBytes)
      throw new Error("The storage of the tenant's plan is used up.");
  }

  #resumed(): void {
    this.#isInterrupted = false;
    const resumedAtMs = Date.now();
    this.#report(Promise.resolve(), () => ({ type: "resumed", stream: this.name, resumedAtMs }));
    this.#packager.reportAfter(this.#reports);
  }

  /** After all reports before, and after `written`. */
  #report(written: Promise<void>, message: () => FromIngest): void {
    this.#reports = Promise.all([this.#reports, written]).then(() => {
      // Before the first part there is nothing to interrupt.
      if (this.#isOpened || this.#early.length > 0) this.#send(message());
    });
  }

  #init({ path: _, ...track }: TrackInfo & { path: string }): void {
    this.#tracks.set(track.kind, track);
    if (this.#isOpened) this.#options.send({ type: "init", stream: this.name, init: this.#initEvent(track) });
  }

  #send(message: FromIngest): void {
    if (this.#isOpened) this.#options.send(message);
    else this.#early.push(message);
  }

  #part({ track, path, data: _, ...rest }: Part): void {
    if (path === null) return;
    const part: PartEvent = { ...rest, track: this.#nameOf(track) };
    this.#send({ type: "part", stream: this.name, part });
  }

  #segment({ track, name, ...segment }: SegmentInfo): void {
    if (name === null) return;
    const event = { ...segment, track: this.#nameOf(track), name };
    this.#send({ type: "segment", stream: this.name, segment: event });
    this.#segments.add(
      event,
      [...this.#tracks.values()].map((one) => one.name),
    );
    if (!this.#isOpened && this.#isComplete(event)) this.#open();
  }

  /** Whether all tracks are there that will be, after a segment. */
  #isComplete({ segment, startSeconds, durationSeconds }: SegmentEvent): boolean {
    if (startSeconds + durationSeconds >= ANNOUNCED_SECONDS) return true;
    const isThere = (kinds: ReadonlySet<TrackKind>) => [...kinds].every((kind) => this.#tracks.has(kind));
    if (!isThere(this.#announced)) return false;
    // When two tracks begin together, one has its first segment before the other one has an init segment.
    return isThere(this.#configured) || segment >= CONFIGURED_SEGMENTS;
  }

  #open(): void {
    this.#isOpened = true;
    const tracks = [...this.#tracks.values()];
    const { segmentSeconds, partSeconds } = this.#packager.targets ?? DEFAULT_TARGETS;
    this.#options.send({
      type: "opened",
      opened: {
        name: this.name,
        channel: this.channel,
        startedAtMs: this.#startedAtMs,
        partTargetSeconds: partSeconds,
        segmentTargetSeconds: segmentSeconds,
        tracks: tracks.map((track) => this.#initEvent(track)),
      },
    });
    for (const message of this.#early.splice(0)) this.#options.send(message);
  }

  #nameOf(kind: TrackKind): string {
    const track = this.#tracks.get(kind);
    if (!track) throw new Error(`There is no ${kind} track.`);
    return track.name;
  }

  #initEvent(track: TrackInfo): InitEvent {
    const { rate } = this.#packager;
    // With three decimals, as EXT-X-STREAM-INF states it.
    const frameRate = track.kind === "video" && rate ? Math.round((rate.num / rate.den) * 1000) / 1000 : undefined;
    return { ...initEventOf(track), frameRate };
  }
}
