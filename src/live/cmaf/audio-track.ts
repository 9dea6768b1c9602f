import type { AudioFormat } from "#lib/codecs";
import type { TimedSample } from "#lib/isobmff";
import type { SegmentPlan } from "./segment-plan.ts";
import type { TrackWriter } from "./track-writer.ts";
import type { Cut } from "./video-track.ts";

/** Packets are counted instead of timed, until their timestamps are this far from the count. */
const MAX_DRIFT_SECONDS = 0.1;
/** Silence takes the place of audio that is this much later than video. */
const MAX_LAG_SECONDS = 1;

type Packet = { data: Buffer; position: number };

export type AudioOptions = {
  writer: TrackWriter;
  format: AudioFormat;
  plan: SegmentPlan;
  /** A packet of silence; null where none is known for the format. */
  silence: Buffer | null;
  /** Position of the start of the recording, in samples. */
  start: number;
  /** There is no video so far: audio is cut by its own length. */
  isAlone: boolean;
  /** A packet of the track, which takes the place of missing ones before it where there is no silence. */
  filler: Buffer;
  onGap: (seconds: number) => void;
};

/**
 * Places packets one after the other, counted in samples, and cuts them where video was cut. All packets last equally
 * long; where their timestamps leave a gap there is silence, and where they overlap packets are dropped.
 */
export class AudioTrack {
  readonly #options: AudioOptions;
  /** The next packet's. */
  #position = 0;
  /** A timestamp, in seconds from the start of the recording, and the position of its packet. Null: to be found. */
  #anchor: { seconds: number; position: number } | null = null;
  #queue: Packet[] = [];
  #cuts: Cut[] = [];
  #lastData: Buffer | null = null;
  #segmentPosition = 0;
  /** Whether the open segment has a part. */
  #hasPart = false;
  #isAlone: boolean;
  /** While it is alone, in seconds from the start of the recording. */
  readonly #ends: number[] = [];

  constructor(options: AudioOptions) {
    this.#options = options;
    this.#isAlone = options.isAlone;
    this.#lastData = options.filler;
  }

  get writer(): TrackWriter {
    return this.#options.writer;
  }
  get isAlone(): boolean {
    return this.#isAlone;
  }
  /** Where segments ended that were not cut by video. */
  get ends(): readonly number[] {
    return this.#ends;
  }
  /** Seconds from the start of the recording to the end of the audio so far. */
  get seconds(): number {
    return (this.#position - this.#options.start) / this.#options.format.sampleRate;
  }

  /** `seconds`: presentation time from the start of the recording, which may be negative. */
  add(seconds: number, data: Buffer): void {
    const { sampleRate, packetSamples } = this.#options.format;
    const anchor = this.#anchor;
    const drift = anchor ? seconds - anchor.seconds - (this.#position - anchor.position) / sampleRate : 0;
    if (!anchor || Math.abs(drift) > MAX_DRIFT_SECONDS) {
      const gap = this.#positionAt(seconds) - this.#position;
      if (gap <= -packetSamples / 2) {
        // Until one follows the last packet.
        if (anchor) this.#options.onGap(gap / sampleRate);
        this.#anchor = null;
        return;
      }
      if (gap >= packetSamples / 2) {
        this.#options.onGap(gap / sampleRate);
        this.#fill(this.#position + gap);
      }
      this.#anchor = { seconds, position: this.#position };
    }
    this.#push(data);
    this.#cut();
  }

  /** Video joins: from now on it cuts, the open segment first. */
  join(): void {
    this.#isAlone = false;
  }

  /** The next packet is placed by its time. */
  realign(): void {
    this.#anchor = null;
  }

  /** The video has been cut there. */
  cutAt(cut: Cut): void {
    this.#cuts.push(cut);
    // What should have arrived by now is missing.
    const late = this.#cuts.findLast(({ seconds }) => seconds <= cut.seconds - MAX_LAG_SECONDS);
    if (late && this.#isBefore(late)) this.#fillTo(late);
    this.#cut();
  }

  /**
   * Ends the open segment where video was cut last, or after the last packet. The next packet is placed by its time. Silence
   * up to that cut is not reported as a gap, because publishers do not end both tracks at the same time: when ffmpeg
   * is stopped, its tracks end 0.3 s apart. Longer gaps were filled, and reported, at an earlier cut.
   */
  flush(): void {
    const last = this.#cuts.at(-1);
    if (last && this.#isBefore(last)) this.#fill(this.#positionAt(last.seconds));
    this.#cut();
    if (this.#isAlone) this.#endAlone();
    else if (this.#queue[0]) this.#position = this.#queue[0].position;
    this.#queue = [];
    this.#anchor = null;
  }

  #push(data: Buffer): void {
    this.#queue.push({ data, position: this.#position });
    this.#position += this.#options.format.packetSamples;
    this.#lastData = data;
  }

  #positionAt = (seconds: number) => Math.round(seconds * this.#options.format.sampleRate) + this.#options.start;

  /** Whether a packet that belongs before a cut is missing. Each belongs to where most of it is. */
  #isBefore({ seconds }: Cut): boolean {
    return this.#position + this.#options.format.packetSamples / 2 <= this.#positionAt(seconds);
  }

  #fillTo(cut: Cut): void {
    this.#options.onGap((this.#positionAt(cut.seconds) - this.#position) / this.#options.format.sampleRate);
    this.#fill(this.#positionAt(cut.seconds));
    this.#anchor = null;
  }

  /** Without silence of the format, the last packet lasts until `end`. */
  #fill(end: number): void {
    const { format, silence } = this.#options;
    const packets = Math.round((end - this.#position) / format.packetSamples);
    if (silence) for (let index = 0; index < packets; index++) this.#push(silence);
    else this.#position += packets * format.packetSamples;
  }

  #cut(): void {
    const { format, plan, writer } = this.#options;
    if (this.#isAlone) {
      const most = this.#mostPackets;
      while (this.#queue.length >= most) this.#flushPart(this.#queue.splice(0, most));
      const { targetSegmentSeconds } = plan.limits;
      if (this.#position - this.#segmentPosition >= targetSegmentSeconds * format.sampleRate) this.#endAlone();
      return;
    }
    for (let cut = this.#cuts[0]; cut && !this.#isBefore(cut); cut = this.#cuts[0]) {
      this.#cuts.shift();
      const end = this.#positionAt(cut.seconds);
      const next = this.#queue.findIndex(({ position }) => position + format.packetSamples / 2 > end);
      this.#flushPart(this.#queue.splice(0, next === -1 ? this.#queue.length : next));
      if (!cut.isSegmentEnd) continue;
      // Segments of both tracks have the same numbers, even where one of the video is shorter than a packet, or has no packet.
      if (!this.#hasPart) this.#flushFiller();
      writer.endSegment();
      this.#hasPart = false;
      this.#segmentPosition = this.#written;
    }
  }

  /** The most packets of a part. */
  get #mostPackets(): number {
    const { format, plan } = this.#options;
    return Math.max(1, Math.floor((plan.partSeconds * format.sampleRate) / format.packetSamples + 1e-6));
  }

  #endAlone(): void {
    const { format, plan, writer } = this.#options;
    this.#flushPart(this.#queue.splice(0));
    if (this.#position === this.#segmentPosition) return;
    writer.endSegment();
    this.#hasPart = false;
    const part = (this.#mostPackets * format.packetSamples) / format.sampleRate;
    plan.complete((this.#position - this.#segmentPosition) / format.sampleRate, part);
    this.#segmentPosition = this.#position;
    this.#ends.push(this.seconds);
  }

  /** Position of the first packet that is not in a part. */
  get #written(): number {
    return this.#queue[0]?.position ?? this.#position;
  }

  #flushFiller(): void {
    const data = this.#options.silence ?? this.#lastData;
    if (!this.#queue[0] && data) {
      this.#queue.push({ data, position: this.#segmentPosition });
      if (this.#position === this.#segmentPosition) this.#position += this.#options.format.packetSamples;
      this.#anchor = null;
    }
    this.#flushPart(this.#queue.splice(0, 1));
  }

  #flushPart(packets: Packet[]): void {
    const [first] = packets;
    if (!first) return;
    this.#hasPart = true;
    const end = this.#written;
    const samples: TimedSample[] = packets.map(({ data, position }, index) => ({
      data,
      compositionOffset: 0,
      isSync: true,
      duration: (packets[index + 1]?.position ?? end) - position,
    }));
    this.#options.writer.addPart(samples, first.position);
  }
}
