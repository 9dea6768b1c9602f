import { OPUS_RATE } from "#lib/codecs";
import { joinNalUnits } from "#lib/mpegts";
import type { PublishStream } from "#lib/publishing";
import type { AacPacket } from "../converted-audio/aac-process.ts";
import { OpusEncoder } from "../converted-audio/opus-encoder.ts";
import { VideoHold } from "../converted-audio/video-hold.ts";
import { JitterBuffer } from "./jitter-buffer.ts";
import { bufferOptions, type WhipLimits } from "./limits.ts";
import type { NegotiatedTrack } from "./negotiation.ts";
import type { SenderReport } from "./rtcp.ts";
import type { RtpPacket } from "./rtp.ts";
import { SessionClock, type SourceClock } from "./sender-clock.ts";
import { type ShownFrame, VideoLayers } from "./video-layers.ts";

/** What waits for the clock of the session. */
const MAX_HELD_BYTES = 32 * 1024 * 1024;
/** Packets of audio: about 4 s. */
const MAX_ENCODED = 200;
const WRAP = 2 ** 32;
/** How long the encoder has for what it still holds. */
const FINISH_MS = 2000;

/** Without a packet for so long, another source of audio takes its place. */
const SILENT_MS = 1000;

/** How long a source that joins waits for its first report. Of what arrives meanwhile, the packet with the least delay has its place. */
const JOIN_MS = 1000;

type AudioSource = {
  id: number;
  clock: SourceClock;
  buffer: JitterBuffer<RtpPacket>;
  joinedAt: number;
  heardAt: number;
  /** The clock of the source before, until this one has its place. */
  replaced: SourceClock | null;
};
/** A sample until the clock of the session runs. `frame`: of video. */
type Held = { bytes: number; frame: ShownFrame | null; emit: () => void };

export type MediaOptions = {
  tracks: readonly NegotiatedTrack[];
  limits: WhipLimits;
  stream: PublishStream;
  ffmpeg: string;
  onAudioError: (error: Error) => void;
  /** Called with what the sink throws later. */
  onError: (error: Error) => void;
};

/** A source for receiver reports and requests. */
export type ReceivedSource = { id: number; buffer: JitterBuffer<RtpPacket> };

/** Reads the samples of a stream from the RTP packets of a session. Methods throw RejectedMedia and what the sink throws. */
export class MediaReceiver {
  readonly #options: MediaOptions;
  readonly #session = new SessionClock();
  readonly #video: VideoLayers;
  readonly #encoder: OpusEncoder;
  readonly #hold: VideoHold;
  readonly #byType: ReadonlyMap<number, NegotiatedTrack>;
  /** The first source of audio, until it is silent; others are ignored. */
  #audio: AudioSource | null = null;
  /** The configuration that was passed on. */
  #configuration: Buffer | null = null;
  #hasChanged = false;
  /** Audio that waits for video: what is ahead of it would be taken for a pause of the video. */
  #encoded: AacPacket[] = [];
  #held: Held[] | null = [];
  #heldBytes = 0;
  #firstAt: number | null = null;
  #isClosed = false;

  constructor(options: MediaOptions) {
    const { tracks, limits, stream, ffmpeg, onAudioError, onError } = options;
    this.#options = options;
    this.#hold = new VideoHold(onError);
    this.#byType = new Map(tracks.map((track) => [track.payloadType, track]));
    const sets = tracks.flatMap(({ kind, parameterSets }) => (kind === "video" ? readSets(parameterSets) : []));
    this.#video = new VideoLayers({
      session: this.#session,
      limits,
      sets,
      hasNack: tracks.some(({ kind, hasNack }) => kind === "video" && hasNack),
      onFrame: (frame) => this.#emit({ bytes: frame.data.length, frame, emit: () => this.#holdVideo(frame) }),
    });
    this.#encoder = new OpusEncoder({
      ffmpeg,
      onError: onAudioError,
      onPacket: (packet) => {
        if (this.#isClosed) return;
        this.#encoded.push(packet);
        if (!this.#video.isWaiting || this.#encoded.length > MAX_ENCODED) this.#emitAudio();
        this.#hold.audioEncoded(packet.timeMs);
      },
    });
    stream.tracks(tracks.map(({ kind }) => kind));
  }

  get sources(): ReceivedSource[] {
    return [...this.#video.sources, ...(this.#audio ? [this.#audio] : [])];
  }

  receive(packet: RtpPacket, now: number): void {
    const track = this.#byType.get(packet.payloadType);
    // Probes for the bandwidth have padding alone.
    if (!track) return;
    this.#firstAt ??= now;
    if (track.kind === "video") this.#video.receive(packet, now);
    else this.#receiveAudio(packet, track, now);
    this.#startClock(now);
  }

  report(report: SenderReport, now: number): void {
    const source = this.#video.find(report.source) ?? (this.#audio?.id === report.source ? this.#audio : undefined);
    source?.clock.report(report);
    this.#startClock(now);
  }

  /** To be called often. */
  tick(now: number): void {
    this.#video.tick(now);
    if (this.#audio) {
      this.#audio.buffer.skip(now);
      this.#readAudio(this.#audio, now);
    }
    this.#startClock(now);
    if (!this.#video.isWaiting) this.#emitAudio();
  }

  /** The publisher has ended: what is being encoded is passed on. To be called before `close`. */
  async finish(): Promise<void> {
    this.#startClock(Number.POSITIVE_INFINITY);
    if (this.#audio) this.#readAudio(this.#audio, Number.POSITIVE_INFINITY);
    await this.#encoder.finish(FINISH_MS);
    if (!this.#isClosed) this.#emitAudio();
    this.#hold.flush();
  }

  /** The connection is lost: what waits is passed on. To be called before `close`. */
  flush(): void {
    if (this.#isClosed) return;
    this.#startClock(Number.POSITIVE_INFINITY);
    this.#hold.flush();
    this.#emitAudio();
  }

  /** Sources of video that should send a keyframe. */
  keyframeRequests(now: number): number[] {
    return this.#video.keyframeRequests(now);
  }

  close(): void {
    this.#isClosed = true;
    this.#held = null;
    this.#encoder.close();
    this.#hold.close();
  }

  #receiveAudio(packet: RtpPacket, { hasNack }: NegotiatedTrack, now: number): void {
    if (packet.payload.length === 0) return;
    const before = this.#audio;
    const isOther = before?.id !== packet.source;
    if (before && isOther && now - before.heardAt < SILENT_MS) return;
    const source = before && !isOther ? before : this.#newAudio(packet.source, { hasNack, now });
    if (!source.buffer.add(packet, now)) return;
    if (before && isOther) this.#replace(before, source);
    this.#audio = source;
    source.heardAt = now;
    source.clock.arrived(source.clock.mediaMs(packet.timestamp), now);
    this.#readAudio(source, now);
  }

  #replace(before: AudioSource, source: AudioSource): void {
    if (!before.replaced) {
      source.replaced = before.clock;
      return;
    }
    // It never had a place.
    this.#session.remove(before.clock);
    source.replaced = before.replaced;
  }

  #newAudio(id: number, { hasNack, now }: { hasNack: boolean; now: number }): AudioSource {
    return {
      id,
      clock: this.#session.add({ rate: OPUS_RATE, isSlewed: false }),
      buffer: new JitterBuffer(bufferOptions(this.#options.limits, hasNack)),
      joinedAt: now,
      heardAt: now,
      replaced: null,
    };
  }

  #readAudio(source: AudioSource, now: number): void {
    const { clock, buffer, replaced, joinedAt } = source;
    if (replaced && !clock.hasReport && now - joinedAt < JOIN_MS) return;
    for (let next = buffer.take(); next; next = buffer.take()) {
      const { timestamp, payload } = next.packet;
      const mediaMs = clock.mediaMs(timestamp);
      const emit = () => {
        const timeMs = clock.sessionMs(mediaMs);
        this.#hold.audioPushed(timeMs);
        this.#encoder.push(timeMs, payload);
      };
      this.#emit({ bytes: payload.length, frame: null, emit });
    }
    // The source begins where the clock of the one before has it.
    if (replaced) this.#session.remove(replaced);
    source.replaced = null;
  }

  #holdVideo(frame: ShownFrame): void {
    const ms = frame.timeMs();
    this.#hold.add({ ms, bytes: frame.data.length, emit: () => this.#emitVideo(frame, ms) });
  }

  /** Where the size changes, the parameter sets are in the frames, where decoders read them too: so the track continues. */
  #emitVideo({ isKeyframe, data, sets, configuration }: ShownFrame, ms: number): void {
    const { stream } = this.#options;
    if (!this.#configuration) {
      if (!isKeyframe) return;
      this.#configuration = configuration;
      stream.config({ kind: "video", codec: "h264", configuration });
    }
    // From then on in each keyframe: players may begin with any of them, and a size may return.
    this.#hasChanged ||= !this.#configuration.equals(configuration);
    const content = isKeyframe && this.#hasChanged ? Buffer.concat([joinNalUnits(sets), data]) : data;
    const timestamp = stampOf(ms);
    stream.sample({ kind: "video", timestamp, compositionOffset: 0, isKeyframe, data: content });
  }

  #emitAudio(): void {
    const { stream } = this.#options;
    for (const { timeMs, data, configuration } of this.#encoded.splice(0)) {
      stream.config({ kind: "audio", codec: "aac", configuration });
      const timestamp = stampOf(timeMs);
      stream.sample({ kind: "audio", timestamp, compositionOffset: 0, isKeyframe: true, data });
    }
  }

  #emit(sample: Held): void {
    if (this.#isClosed) return;
    if (this.#held === null) return sample.emit();
    this.#held.push(sample);
    this.#heldBytes += sample.bytes;
  }

  /** Until the reports of all tracks have arrived, how audio and video relate is not known. */
  #startClock(now: number): void {
    if (this.#held === null || this.#firstAt === null || this.#isClosed) return;
    const { tracks, limits } = this.#options;
    // Which layers come is not known: the stream begins with the largest of the first seconds.
    const isThere = tracks.every(({ kind, rids }) =>
      kind === "audio" ? this.#audio !== null : rids.length < 2 && [...this.#video.sources].length > 0,
    );
    const isLate = now - this.#firstAt >= limits.reportTimeoutMs || this.#heldBytes > MAX_HELD_BYTES;
    if (!isLate && !(isThere && this.#session.hasReports)) return;
    this.#session.start();
    const held = this.#held;
    this.#held = null;
    // Browsers begin with a small size, and playlists state the first one: the stream begins with the largest.
    const first = largestKeyframe(held);
    for (const [index, { frame, emit }] of held.entries()) if (!frame || index >= first) emit();
  }
}

/** Index of the first keyframe of the largest size. */
function largestKeyframe(held: readonly Held[]): number {
  const sizes = held.map(({ frame }) => (frame?.isKeyframe ? frame.pixels : 0));
  return sizes.indexOf(sizes.reduce((largest, size) => Math.max(largest, size), 0));
}

const stampOf = (ms: number) => Math.round(ms) % WRAP;

/** sprop-parameter-sets (RFC 6184, 8.1). */
function readSets(text: string): Buffer[] {
  const sets = text.split(",", 32).map((set) => Buffer.from(set, "base64"));
  return sets.filter(({ length }) => length > 1);
}
