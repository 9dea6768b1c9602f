import { encodingSpec } from "#media/encoding-spec.ts";
import { VIDEO_TIMESCALE } from "../cmaf/frame-clock.ts";
import { type Frame, PartBuffer } from "../cmaf/part-buffer.ts";
import { TrackWriter } from "../cmaf/track-writer.ts";
import { type DescribedVideo, describeVideo } from "../cmaf/tracks.ts";
import { initEventOf } from "../ingest/init-event.ts";
import { SegmentList } from "../ingest/segment-list.ts";
import { PART_SECONDS } from "../media.ts";
import type { GapEvent, InitEvent, PartEvent, SegmentEvent } from "../playlists/events.ts";
import type { EncodedSample } from "./fragment-reader.ts";
import type { SourceSegments } from "./source-segments.ts";

/** What a rendition reports, in order. */
export type RenditionChange =
  | { type: "init"; init: InitEvent }
  | { type: "part"; part: PartEvent }
  | { type: "segment"; segment: SegmentEvent }
  | { type: "gap"; gap: GapEvent };

export type RenditionOptions = {
  name: string;
  width: number;
  height: number;
  frameRate: number | undefined;
  /** Directory of all renditions of the stream. */
  folder: string;
  source: SourceSegments;
  /** Media time of the start of the presentation in the publisher's video, in `VIDEO_TIMESCALE`. */
  sourceDelay: number;
  /** How long segments are kept. */
  keptSeconds: number;
  /** Throws when the disk is full. */
  admit: () => Promise<void>;
  /** The longest part, as the playlists of the stream state it; default 0.5. */
  partSeconds?: number;
  report: (change: RenditionChange) => void;
  /** Nothing more can be stored. */
  onFailure: (error: unknown) => void;
};

/** The keyframe of a segment may be this far from the start of the publisher's segment, which is a decode time. */
const TOLERANCE_SECONDS = 0.15;
/** The encoder has ignored the keyframe of a segment. */
const MISSING_SECONDS = 1;
const MAX_FRAME_SECONDS = 12;

/**
 * A rendition of a running stream: cuts what an encoder sends where the video of the publisher is cut, so that segments of the
 * same number have the same content, and reports gaps where there is none. Several encoders may follow each other.
 */
export class Rendition {
  readonly #options: RenditionOptions;
  readonly #segments: SegmentList;
  #described: DescribedVideo | null = null;
  #writer: TrackWriter | null = null;
  /** The composition offset of the first frame, which the edit list removes. */
  #delay = 0;
  /** Number of the segment that is open or comes next; null before the first one. */
  #next: number | null = null;
  /** A segment is open. */
  #isOpen = false;
  #last: Frame | null = null;
  readonly #part = new PartBuffer(
    () => (this.#options.partSeconds ?? PART_SECONDS) * VIDEO_TIMESCALE,
    () => this.#flushPart(),
  );

  constructor(options: RenditionOptions) {
    this.#options = options;
    this.#segments = new SegmentList(options.folder, options.keptSeconds);
  }

  get name(): string {
    return this.#options.name;
  }
  get next(): number | null {
    return this.#next;
  }
  /** End of what was added of the current encoder, in seconds of the stream; 0 before it. */
  get seconds(): number {
    return this.#last ? (this.#last.time + this.#last.duration - this.#delay) / VIDEO_TIMESCALE : 0;
  }
  /** Bytes that are not written yet. */
  get pendingBytes(): number {
    return this.#writer?.pendingBytes ?? 0;
  }
  /** Resolves when all that was added is written and reported. */
  async settled(): Promise<void> {
    await this.#writer?.settled();
  }

  /** An encoder begins. `configuration`: of its decoder. Throws Error for another one than before, or another size. */
  begin(configuration: Buffer): void {
    const { width, height } = this.#options;
    if (this.#described && !this.#described.config.configuration.equals(configuration))
      throw new Error(`The encoder of ${this.name} has other parameters than the one before.`);
    const config = { kind: "video", codec: encodingSpec.video.codec, configuration } as const;
    const described = this.#described ?? describeVideo(config, { partSeconds: PART_SECONDS });
    if (described.info.width !== width || described.info.height !== height)
      throw new Error(`The encoder of ${this.name} has another size.`);
    this.#described = described;
  }

  /** Adds the next frame in decode order. Frames before the first keyframe of a segment are dropped. Throws Error. */
  add({ time: sent, compositionOffset, isSync, data, duration }: EncodedSample): void {
    const { source, sourceDelay } = this.#options;
    const seconds = (sent + compositionOffset - sourceDelay) / VIDEO_TIMESCALE;
    const from = isSync ? source.at(seconds + TOLERANCE_SECONDS) : null;
    if (!this.#isOpen) {
      if (!from || seconds - from.startSeconds > TOLERANCE_SECONDS || from.number < (this.#next ?? 0)) return;
      this.#writer ??= this.#start(Math.max(0, compositionOffset));
    }
    const time = sent - sourceDelay + this.#delay;
    const isBoundary = from !== null && (!this.#isOpen || from.number !== this.#next);
    if (isBoundary && seconds - from.startSeconds > TOLERANCE_SECONDS)
      throw new Error(`${this.name} has no keyframe at the start of a segment.`);
    if (!isSync && (source.at(seconds - MISSING_SECONDS)?.number ?? 0) > (this.#next ?? 0))
      throw new Error(`${this.name} has no keyframe at the start of a segment.`);
    if (this.#last) {
      // Where segments are skipped, the frame does not last until the next one.
      const isSkip = isBoundary && from.number !== (this.#next ?? 0) + 1;
      const lasted = isSkip ? this.#last.duration : time - this.#last.time;
      if (!(lasted > 0 && lasted <= MAX_FRAME_SECONDS * VIDEO_TIMESCALE))
        throw new Error(`${this.name} has frames whose times do not ascend.`);
      this.#part.append({ ...this.#last, duration: lasted });
    }
    this.#last = { time, data, isSync, compositionOffset, duration: Math.max(1, duration) };
    if (isBoundary) this.#beginSegment(from.number);
    else if (!this.#part.fits(this.#last.duration)) this.#flushPart();
  }

  /** The encoder has ended. What is open is dropped; `next` says which segment comes next. */
  abandon(): void {
    this.#last = null;
    this.#part.take();
    this.#isOpen = false;
    if (this.#next !== null) this.#writer?.skipTo(this.#next);
  }

  /** The stream has ended: parts that are listed stay, and nothing follows. */
  finish(): void {
    this.#writer?.endSegment();
    this.#isOpen = false;
  }

  /** Reports gaps up to segment `last`, all of which the publisher's video has. Not while a segment is open. */
  fill(last: number): void {
    if (this.#next === null) return;
    for (; this.#next <= last; this.#next++) {
      const segment = this.#next;
      const startSeconds = this.#options.source.find(segment)?.startSeconds ?? 0;
      this.#writer?.inOrder(() =>
        this.#options.report({ type: "gap", gap: { track: this.name, segment, startSeconds } }),
      );
    }
  }

  #start(delay: number): TrackWriter {
    if (!this.#described) throw new Error(`${this.name} has no configuration.`);
    this.#delay = delay;
    const { info: own, timescale, init } = this.#described;
    const { folder, frameRate, report, admit, onFailure } = this.#options;
    const info = { ...own, name: this.name };
    return new TrackWriter({
      info,
      folder,
      timescale,
      onFailure,
      init: init(delay),
      startTime: 0,
      callbacks: {
        admit,
        onInit: () => report({ type: "init", init: { ...initEventOf(info), frameRate, isEncoded: true } }),
        onPart: ({ data: _, path, ...part }) => {
          if (path !== null) report({ type: "part", part: { ...part, track: this.name } });
        },
        onSegment: ({ name, ...segment }) => {
          if (name === null) return;
          const event = { ...segment, name, track: this.name };
          report({ type: "segment", segment: event });
          this.#segments.add(event, [this.name]);
        },
      },
    });
  }

  #beginSegment(number: number): void {
    if (this.#isOpen) {
      this.#flushPart();
      this.#writer?.endSegment();
      this.#next = (this.#next ?? 0) + 1;
    }
    this.#next ??= number;
    if (number < this.#next) throw new Error(`${this.name} has times that go back.`);
    this.fill(number - 1);
    this.#writer?.skipTo(number);
    this.#isOpen = true;
  }

  #flushPart(): void {
    const frames = this.#part.take();
    const [first] = frames;
    if (first) this.#writer?.addPart(frames, first.time);
  }
}
