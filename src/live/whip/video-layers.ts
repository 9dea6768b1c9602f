import type { WhipLimits } from "./limits.ts";
import type { RtpPacket } from "./rtp.ts";
import type { SessionClock } from "./sender-clock.ts";
import { type VideoFrame, VideoSource } from "./video-source.ts";

/** Without a frame for so long, a layer is paused, and a lower one takes its place. */
const SILENT_MS = 1000;
const REPEAT_MS = 300;
/** Layers that are not shown are only watched for their size. */
const OTHER_LAYERS_MS = 10_000;

/** A frame of the layer that is shown. `timeMs` gives its time on the clock of the session, once that runs. */
export type ShownFrame = VideoFrame & { configuration: Buffer; pixels: number; timeMs: () => number };

export type VideoOptions = {
  session: SessionClock;
  limits: WhipLimits;
  /** Parameter sets of the offer. */
  sets: readonly Buffer[];
  hasNack: boolean;
  onFrame: (frame: ShownFrame) => void;
};

/** The sources of video in one session: one, or the layers of simulcast, of which the largest is passed on. */
export class VideoLayers {
  readonly #sources = new Map<number, VideoSource>();
  readonly #options: VideoOptions;
  #active: VideoSource | null = null;

  constructor(options: VideoOptions) {
    this.#options = options;
  }

  get sources(): Iterable<VideoSource> {
    return this.#sources.values();
  }

  /** The frames that follow wait for a packet. */
  get isWaiting(): boolean {
    return this.#active?.buffer.hasGap ?? false;
  }

  find(id: number): VideoSource | undefined {
    return this.#sources.get(id);
  }

  /** Throws RejectedMedia. */
  receive(packet: RtpPacket, now: number): void {
    const source = this.#sources.get(packet.source) ?? this.#add(packet.source);
    if (!source.buffer.add(packet, now)) return;
    source.clock.arrived(source.clock.mediaMs(packet.timestamp), now);
    this.#read(source, now);
  }

  /** Skips what was lost. To be called often. Throws RejectedMedia. */
  tick(now: number): void {
    for (const source of this.#sources.values()) {
      source.buffer.skip(now);
      this.#read(source, now);
    }
  }

  /** The sources whose keyframes are to be requested. */
  keyframeRequests(now: number): number[] {
    const wanted: number[] = [];
    const isPaused = this.#active === null || now - this.#active.frameAt > SILENT_MS;
    for (const source of this.#sources.values()) {
      const isWanted = source === this.#active || isPaused;
      const everyMs = isWanted ? this.#options.limits.keyframeMs : OTHER_LAYERS_MS;
      if (source.shouldRequestKeyframe(now, { everyMs, repeatMs: isWanted ? REPEAT_MS : OTHER_LAYERS_MS }))
        wanted.push(source.id);
    }
    return wanted;
  }

  #add(id: number): VideoSource {
    const { session, limits, sets, hasNack } = this.#options;
    const clock = session.add({ rate: 90_000, isSlewed: true });
    const source = new VideoSource(id, { clock, limits, sets, hasNack });
    this.#sources.set(id, source);
    return source;
  }

  #read(source: VideoSource, now: number): void {
    for (const frame of source.read(now)) {
      if (frame.isKeyframe && this.#isBetter(source, now)) this.#active = source;
      const { configuration, pixels, clock } = source;
      if (source !== this.#active || !configuration) continue;
      const mediaMs = clock.mediaMs(frame.timestamp);
      this.#options.onFrame({ ...frame, configuration, pixels, timeMs: () => clock.sessionMs(mediaMs) });
    }
  }

  #isBetter(source: VideoSource, now: number): boolean {
    const active = this.#active;
    if (active === null) return true;
    if (this.#options.session.isRunning && !source.clock.hasReport) return false;
    return source.pixels > active.pixels || now - active.frameAt > SILENT_MS;
  }
}
