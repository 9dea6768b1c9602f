import type { StreamEnd } from "#lib/codecs";
import { TsDemuxer } from "#lib/mpegts";
import { plainAddress } from "#lib/network";
import {
  type ConnectionLimit,
  ignoredTrack,
  type Log,
  type LogLevel,
  type Pending,
  type PublishDecision,
  PublishRate,
  type PublishRequest,
  PublishStream,
  RejectedMedia,
  type StrangerLog,
} from "#lib/publishing";
import { ArrivalClock } from "./arrival-clock.ts";
import { Feedback } from "./feedback.ts";
import { acceptance, type Handshake, rejection } from "./handshake.ts";
import type { SrtLimits } from "./limits.ts";
import {
  CONTROL,
  controlTypeOf,
  droppedRange,
  HEADER_BYTES,
  informationOf,
  isControl,
  isRetransmitted,
  KEY_REQUEST,
  keyFlagsOf,
  sequenceOf,
  subtypeOf,
  timestampOf,
} from "./packets.ts";
import { ReceiveBuffer } from "./receive-buffer.ts";
import { REFUSALS, REJECTION } from "./rejections.ts";
import { StreamCipher } from "./stream-cipher.ts";
import type { StreamTarget } from "./stream-id.ts";

const LOGGED_CHARACTERS = 200;

/** The address and port that a connection belongs to. */
export type Peer = { address: string; port: number };

export type SessionOptions = {
  peer: Peer;
  /** Socket id of the connection here. */
  socketId: number;
  handshake: Handshake;
  target: StreamTarget;
  /** Milliseconds that the caller wants. */
  latencyMs: number;
  /** The message with the keys of a caller that encrypts, with `passphrase`. */
  keyMaterial: Buffer | null;
  passphrase: string | null;
  limits: SrtLimits;
  authorize: (request: PublishRequest) => Promise<PublishDecision>;
  /** Sends a packet to the peer. */
  send: (packet: Buffer) => void;
  /** Called once: the connection is forgotten. */
  onClose: () => void;
  log: Log;
  /** Before a publish is accepted. */
  strangers: StrangerLog;
  limit: ConnectionLimit;
  pending: Pending;
};

/** What exists once a publish is accepted. */
type Publishing = {
  stream: PublishStream;
  demuxer: TsDemuxer;
  buffer: ReceiveBuffer;
  feedback: Feedback;
  rate: PublishRate;
};

/**
 * One connection of a publisher, from its conclusion handshake on: authorization, then packets until it ends. Whatever the
 * peer sends, only its own connection is closed. Times are milliseconds of a monotonic clock.
 */
export class Session {
  readonly #options: SessionOptions;
  readonly #latencyMs: number;
  readonly #clock = new ArrivalClock();
  #state: "authorizing" | "refused" | "publishing" | "closed" = "authorizing";
  /** The answer to the handshake, which is repeated when the handshake is; null until there is one. */
  #answer: Buffer | null = null;
  #publishing: Publishing | null = null;
  readonly #startedAt: number;
  /** When a packet of the peer arrived, and when audio or video. */
  #heardAt: number;
  #mediaAt: number;
  #retransmitted = 0;
  #isAccepted = false;
  /** Gives the place among the publishers back; null before a publish. */
  #release: (() => void) | null = null;
  readonly #cipher: StreamCipher | null;

  constructor(options: SessionOptions, now: number) {
    const { limits, latencyMs } = options;
    this.#options = options;
    this.#cipher = options.passphrase === null ? null : new StreamCipher(options.passphrase);
    this.#latencyMs = Math.min(limits.maxLatencyMs, Math.max(limits.minLatencyMs, latencyMs));
    this.#startedAt = now;
    this.#heardAt = now;
    this.#mediaAt = now;
    this.#authorize().catch((error) => this.#fail(error));
  }

  isOf({ address, port }: Peer): boolean {
    return this.#options.peer.address === address && this.#options.peer.port === port;
  }

  /** The caller has repeated its conclusion, of that many bytes. */
  repeatAnswer(bytes: number): void {
    if (this.#answer && this.#answer.length <= bytes) this.#options.send(this.#answer);
  }

  /** A packet of this connection, which becomes the session's. */
  receive(packet: Buffer, now: number): void {
    if (isControl(packet) && controlTypeOf(packet) === CONTROL.handshake) return this.repeatAnswer(packet.length);
    if (this.#state !== "publishing" || !this.#publishing) return;
    const silentMs = now - this.#heardAt;
    this.#heardAt = now;
    try {
      this.#publishing.rate.addBytes(packet.length);
      this.#publishing.rate.addMessage();
      if (isControl(packet)) this.#control(packet, this.#publishing, { now, silentMs });
      else this.#data(packet, this.#publishing, now);
    } catch (error) {
      this.#fail(error);
    }
  }

  /** To be called every 10 ms. */
  tick(now: number): void {
    const { limits } = this.#options;
    const age = now - this.#startedAt;
    if (this.#state === "authorizing" && age > limits.publishTimeoutMs) return this.#close("disconnected");
    if (this.#state === "refused" && now - this.#heardAt > limits.closeTimeoutMs) return this.#close("stopped");
    if (this.#state !== "publishing" || !this.#publishing) return;
    if (now - this.#heardAt > limits.peerTimeoutMs) return this.#timedOut("is silent");
    if (now - this.#mediaAt > limits.idleTimeoutMs) return this.#timedOut("sends no audio or video");
    const { buffer, feedback } = this.#publishing;
    try {
      if (buffer.hasGap) {
        buffer.skip(now - this.#latencyMs);
        this.#deliver(this.#publishing);
      }
      if (this.#state === "publishing") feedback.tick(buffer, now);
    } catch (error) {
      this.#fail(error);
    }
  }

  /** Another connection needs its place. */
  displaced(): void {
    this.#log("info", "a connection that does not publish was closed for a new one", {});
    this.#close("disconnected");
  }

  /** Ends the stream as `stopped`. SRT has no message for the reason, which is logged. */
  stop(reason: string): void {
    if (this.#state !== "publishing") return this.#close("stopped");
    this.#log("info", "a stream was stopped", { reason });
    this.#finish("stopped");
  }

  #data(packet: Buffer, publishing: Publishing, now: number): void {
    const { buffer, feedback } = publishing;
    if (isRetransmitted(packet)) this.#retransmitted++;
    const payload = this.#payloadOf(packet);
    if (payload === null) return;
    const expectedMs = this.#clock.expected(timestampOf(packet), now);
    buffer.add({ sequence: sequenceOf(packet), payload, expectedMs }, (missing) => feedback.gap(missing));
    this.#deliver(publishing);
    if (this.#state === "publishing") feedback.received(packet.length, buffer.next, now);
  }

  /** Null when its key is not known yet. */
  #payloadOf(packet: Buffer): Buffer | null {
    const payload = packet.subarray(HEADER_BYTES);
    const key = keyFlagsOf(packet);
    if (this.#cipher === null && key === 0) return payload;
    if (this.#cipher === null || key === 0)
      throw new RejectedMedia("Either all packets are encrypted, or none. Restart the encoder.");
    return this.#cipher.decrypt(key, sequenceOf(packet), payload);
  }

  #deliver({ buffer, demuxer }: Publishing): void {
    while (this.#state === "publishing") {
      const payload = buffer.take();
      if (payload === null) return;
      if (payload.length > 0) demuxer.push(payload);
    }
  }

  /** `silentMs`: since the packet before. */
  #control(packet: Buffer, publishing: Publishing, { now, silentMs }: { now: number; silentMs: number }): void {
    const { buffer, feedback } = publishing;
    switch (controlTypeOf(packet)) {
      case CONTROL.acknowledgementReceived:
        return feedback.answered(informationOf(packet), now);
      case CONTROL.dropRequest: {
        const range = droppedRange(packet);
        if (range) buffer.drop(range, now);
        return;
      }
      case CONTROL.userDefined:
        if (subtypeOf(packet) === KEY_REQUEST)
          this.#refreshKeys(packet.subarray(HEADER_BYTES)).catch((error) => this.#fail(error));
        return;
      case CONTROL.shutdown:
        // A publisher sends something every second. Libraries close a connection that was interrupted with a shutdown too.
        return silentMs > this.#options.limits.silenceMs ? this.#close("disconnected") : this.#unpublished(publishing);
    }
  }

  /** The publisher has ended its stream: what waits for lost packets is passed on without them. */
  #unpublished(publishing: Publishing): void {
    const { buffer, demuxer } = publishing;
    while (buffer.hasGap && this.#state === "publishing") {
      buffer.skip(Number.POSITIVE_INFINITY);
      this.#deliver(publishing);
    }
    if (this.#state === "publishing") demuxer.end();
    this.#close("unpublished");
  }

  /** The sender announces its next key, and repeats that until the message has come back. */
  async #refreshKeys(message: Buffer): Promise<void> {
    if (await this.#cipher?.accept(message)) this.#publishing?.feedback.answerKeys(message, performance.now());
  }

  async #authorize(): Promise<void> {
    const { target, peer, keyMaterial } = this.#options;
    if (this.#cipher && keyMaterial && !(await this.#cipher.accept(keyMaterial))) {
      if (this.#state === "authorizing") this.#refuse("passphrase", REJECTION.wrongPassphrase);
      return;
    }
    if (this.#state !== "authorizing") return;
    const address = plainAddress(peer.address);
    if (this.#options.limit.isFull(address)) return this.#refuse("connections", REJECTION.resource);
    const decision = await this.#decisionOn({ ...target, address, encoder: "" });
    if (decision.accepted) {
      const stream = new PublishStream(decision.sink);
      this.#release = this.#state === "authorizing" ? this.#options.limit.admit(address) : null;
      if (this.#release) return this.#start(stream, decision);
      stream.end("disconnected");
      if (this.#state === "authorizing") this.#refuse("connections", REJECTION.resource);
    } else if (this.#state === "authorizing") this.#refuse(decision.reason, REFUSALS[decision.reason]);
  }

  async #decisionOn(request: PublishRequest): Promise<PublishDecision> {
    try {
      return await this.#options.authorize(request);
    } catch (error) {
      this.#log("error", "a publish could not be authorized", { error: String(error) });
      return { accepted: false, reason: "unavailable" };
    }
  }

  #refuse(reason: string, number: number): void {
    const { handshake, peer, send } = this.#options;
    this.#log("info", "a publish was refused", { reason });
    this.#state = "refused";
    this.#freeLimit();
    this.#heardAt = performance.now();
    this.#answer = rejection(handshake, peer.address, number);
    send(this.#answer);
  }

  #start(stream: PublishStream, { sink, limits: own }: Extract<PublishDecision, { accepted: true }>): void {
    const { handshake, limits, peer, send, socketId, keyMaterial } = this.#options;
    const now = performance.now();
    this.#state = "publishing";
    this.#isAccepted = true;
    this.#options.pending.release();
    this.#heardAt = now;
    this.#mediaAt = now;
    const first = handshake.initialSequence;
    this.#publishing = {
      stream,
      demuxer: new TsDemuxer({
        limits,
        // The sink may have stopped the stream in the middle of a packet.
        onConfig: (config) => {
          if (this.#state !== "closed") stream.config(config);
        },
        onTracks: (kinds, ignored) => {
          if (this.#state === "closed") return;
          stream.tracks(kinds);
          for (const kind of ignored) stream.warn(ignoredTrack(kind));
        },
        onSample: (sample) => {
          if (this.#state === "closed") return;
          this.#mediaAt = performance.now();
          stream.sample(sample);
        },
        onConvertible: (audio, name) => {
          if (this.#state === "closed") return;
          this.#mediaAt = performance.now();
          stream.convertible(audio, name);
        },
      }),
      buffer: new ReceiveBuffer(limits.bufferedPackets, first),
      feedback: new Feedback(send, { destination: handshake.socketId, first, now }),
      rate: new PublishRate({ ...limits, maxBitrate: own?.maxBitrate ?? limits.maxBitrate }),
    };
    this.#answer = acceptance(handshake, peer.address, {
      socketId,
      flowWindow: limits.bufferedPackets,
      latencyMs: this.#latencyMs,
      keyMaterial,
    });
    send(this.#answer);
    this.#log("info", "a publish has started", {});
    try {
      sink.onStart?.({ stop: (description) => this.stop(description) });
    } catch (error) {
      this.#fail(error);
    }
  }

  #fail(error: unknown): void {
    if (error instanceof RejectedMedia) this.#log("warn", "a stream was rejected", { reason: error.message });
    else this.#log("error", "a stream failed", { error: String(error) });
    this.#finish("stopped");
  }

  #timedOut(what: string): void {
    this.#log("info", `a publisher ${what}`, {});
    this.#finish("disconnected");
  }

  /** Closes the connection from here. */
  #finish(end: StreamEnd): void {
    if (this.#state === "closed") return;
    this.#publishing?.feedback.shutdown(performance.now());
    this.#close(end);
  }

  #close(end: StreamEnd): void {
    if (this.#state === "closed") return;
    this.#state = "closed";
    this.#freeLimit();
    const publishing = this.#publishing;
    this.#publishing = null;
    this.#options.onClose();
    if (!publishing) return;
    const { stream, buffer } = publishing;
    this.#log("info", "a publish has ended", { end, lost: buffer.lost, retransmitted: this.#retransmitted });
    try {
      stream.end(end);
    } catch (error) {
      this.#log("error", "the end of a stream could not be handled", { error: String(error) });
    }
  }

  #freeLimit(): void {
    this.#release?.();
    this.#release = null;
  }

  #log(level: LogLevel, message: string, fields: Record<string, string | number>): void {
    const all = { address: plainAddress(this.#options.peer.address), stream: this.#options.target.name, ...fields };
    const short = Object.entries(all).map(
      ([name, value]) => [name, typeof value === "string" ? value.slice(0, LOGGED_CHARACTERS) : value] as const,
    );
    const shown = { ...Object.fromEntries(short), address: all.address };
    if (this.#isAccepted) this.#options.log(level, message, shown);
    else this.#options.strangers.write(level, message, shown);
  }
}
