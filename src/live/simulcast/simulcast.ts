import type { LiveSample, LiveVideoCodec, TrackConfig } from "#lib/codecs";
import type { Log } from "#lib/publishing";
import { announcedFourCcs, configPayload, MESSAGE, metadataPayload, samplePayload } from "#lib/rtmp";
import type { Connect } from "./connect.ts";
import type { SimulcastReport, SimulcastTarget } from "./messages.ts";
import { StreamClock } from "./stream-clock.ts";
import { type StreamSetup, TargetSender } from "./target-sender.ts";

/** A stream whose video has not begun after so long has none. */
const AUDIO_ONLY_MS = 2000;
const TYPE = { video: MESSAGE.video, audio: MESSAGE.audio } as const;

export type SimulcastOptions = {
  channel: { channelId: number; tenantId: number; channel: string };
  connect: Connect;
  log: Log;
  report: (report: SimulcastReport) => void;
};

/**
 * Sends what the publishers of a channel send, one after another, to other servers, without encoding it. No method throws
 * or waits: nothing that happens here affects the stream.
 */
export class Simulcast {
  readonly #options: SimulcastOptions;
  readonly #clock = new StreamClock();
  readonly #configs: Partial<Record<TrackConfig["kind"], TrackConfig>> = {};
  #senders: TargetSender[] = [];
  #firstMs: number | null = null;
  #ms = 0;
  /** Bytes that went to targets which have been removed. */
  #removedBytes = 0;
  #reportedBytes = 0;
  /** Since the last report. */
  #failures = 0;
  /** The last state of each target in the log. */
  readonly #logged = new Map<number, string | undefined>();
  #hasReported = false;
  #isFinished = false;

  constructor(options: SimulcastOptions) {
    this.#options = options;
  }

  /** Targets that are no longer in the list are disconnected, and those that have changed begin again. */
  setTargets(targets: readonly SimulcastTarget[]): void {
    if (this.#isFinished) return;
    const known = new Map(this.#senders.map((sender) => [sender.target.id, sender]));
    this.#senders = targets.flatMap((target) => {
      const sender = known.get(target.id);
      if (sender && isSame(sender.target, target)) {
        known.delete(target.id);
        return sender;
      }
      return this.#senderOf(target) ?? [];
    });
    this.#remove(known.values());
    this.report();
  }

  config(config: TrackConfig): void {
    this.#guard(() => {
      const before = this.#configs[config.kind];
      if (before?.codec === config.codec && before.configuration.equals(config.configuration)) return;
      this.#configs[config.kind] = config;
      const message = { type: TYPE[config.kind], payload: configPayload(config), ms: this.#ms };
      for (const sender of this.#senders) sender.configure(message);
    });
  }

  sample(sample: LiveSample): void {
    if (this.#isFinished) return;
    this.#guard(() => {
      this.#ms = this.#clock.read(sample, performance.now());
      this.#firstMs ??= this.#ms;
      if (this.#senders.length === 0) return;
      const isVideo = sample.kind === "video";
      const message = {
        type: TYPE[sample.kind],
        ms: this.#ms,
        payload: samplePayload(sample, this.#videoCodec),
        isFrame: isVideo || !this.#videoCodec,
        isStart: isVideo ? sample.isKeyframe : !this.#videoCodec && this.#ms - this.#firstMs >= AUDIO_ONLY_MS,
      };
      for (const sender of this.#senders) sender.offer(message);
    });
  }

  /** Another publisher continues the stream. Targets stay connected. */
  resume(): void {
    this.#clock.resume();
    for (const sender of this.#senders) sender.resume();
  }

  /** Reports the targets, once there are any. */
  report(): void {
    if (this.#senders.length === 0 && !this.#hasReported) return;
    this.#hasReported = true;
    this.#send(this.#senders.map((sender) => sender.report));
  }

  /** The stream has ended. Resolves when all targets have received the rest, or a few seconds have passed. */
  async finish(): Promise<void> {
    if (this.#isFinished) return;
    this.#isFinished = true;
    if (!this.#hasReported) return;
    this.#send(null);
    await Promise.all(this.#senders.map((sender) => sender.finish().catch(() => {})));
    this.#send();
  }

  get #videoCodec(): LiveVideoCodec | undefined {
    const { video } = this.#configs;
    return video?.kind === "video" ? video.codec : undefined;
  }

  #senderOf(target: SimulcastTarget): TargetSender | null {
    try {
      return new TargetSender({
        target,
        connect: this.#options.connect,
        setup: () => this.#setup(),
        onChange: () => this.#changed(target.id),
      });
    } catch {
      // Its URL was stored by another version.
      return null;
    }
  }

  #setup(): StreamSetup {
    const configs = [this.#configs.video, this.#configs.audio].filter((config) => config !== undefined);
    const codec = this.#videoCodec;
    return {
      messages: [
        { type: MESSAGE.data, payload: metadataPayload(this.#configs) },
        ...configs.map((config) => ({ type: TYPE[config.kind], payload: configPayload(config) })),
      ],
      fourCcs: codec ? announcedFourCcs(codec) : [],
    };
  }

  #changed(id: number): void {
    if (this.#isFinished) return;
    const { status, error } = this.#senders.find(({ target }) => target.id === id)?.report ?? {};
    if (status === "failed") this.#failures++;
    this.report();
    // A target that stays down is tried again for hours.
    if (this.#logged.get(id) === (error ?? status)) return;
    this.#logged.set(id, error ?? status);
    const fields = { channel: this.#options.channel.channel, target: id };
    if (status === "live") this.#options.log("info", "a simulcast target accepts the stream", fields);
    else if (error) this.#options.log("warn", "a simulcast target failed", { ...fields, reason: error });
  }

  #send(targets?: SimulcastReport["targets"]): void {
    const { channelId, tenantId } = this.#options.channel;
    const total = this.#senders.reduce((sum, sender) => sum + sender.sentBytes, this.#removedBytes);
    const sentBytes = Math.max(0, total - this.#reportedBytes);
    this.#reportedBytes += sentBytes;
    const failures = this.#failures;
    this.#failures = 0;
    this.#options.report({ channelId, tenantId, sentBytes, failures, ...(targets !== undefined && { targets }) });
  }

  #remove(senders: Iterable<TargetSender>): void {
    for (const sender of senders) {
      sender.stop();
      this.#removedBytes += sender.sentBytes;
    }
  }

  #guard(work: () => void): void {
    try {
      work();
    } catch (error) {
      const fields = { channel: this.#options.channel.channel, error: String(error) };
      this.#options.log("error", "a stream cannot be sent to its targets", fields);
      this.#remove(this.#senders);
      this.#senders = [];
    }
  }
}

const isSame = (a: SimulcastTarget, b: SimulcastTarget) => a.url === b.url && a.streamKey === b.streamKey;
