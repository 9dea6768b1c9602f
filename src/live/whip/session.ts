import { randomInt } from "node:crypto";
import type { StreamEnd } from "#lib/codecs";
import { type Log, type LogLevel, type PublishRate, type PublishStream, RejectedMedia } from "#lib/publishing";
import { type DtlsIdentity, DtlsPeer, isDtls } from "./dtls.ts";
import type { WhipLimits } from "./limits.ts";
import { MediaReceiver } from "./media-receiver.ts";
import type { Negotiated } from "./negotiation.ts";
import { keyframeRequest, nack, readRtcp, receiverReport } from "./rtcp.ts";
import { isRtcp, readRtp } from "./rtp.ts";
import { SourceReports } from "./source-reports.ts";
import type { SrtpTransport } from "./srtp.ts";
import { type BindingRequest, bindingResponse, isAuthentic } from "./stun.ts";
import { TransportArrivals } from "./transport-arrivals.ts";
import type { Werift } from "./werift.ts";

/** Where packets of a peer come from, and go to. `id`: its transport, address and port. `close`: of a TCP connection. */
export type Path = { id: string; address: string; port: number; send: (packet: Buffer) => void; close?: () => void };

export type SessionOptions = {
  /** The id in the session's URL. */
  id: string;
  /** ICE credentials of this server. */
  ufrag: string;
  password: string;
  channel: string;
  /** The address of the client that sent the offer. */
  address: string;
  negotiated: Negotiated;
  werift: Werift;
  identity: DtlsIdentity;
  ffmpeg: string;
  limits: WhipLimits;
  rate: PublishRate;
  stream: PublishStream;
  log: Log;
  /** The peer has shown on another path that it is there. */
  onProgress: () => void;
  /** The handshake is complete. False: there is no place for another publisher. */
  onConnect: () => boolean;
  /** Called once: the session is forgotten. */
  onClose: () => void;
};

const REPORT_MS = 1000;
const FEEDBACK_MS = 100;

/**
 * One publisher, from its accepted offer on: connectivity checks, DTLS, then media until it ends. Whatever the peer sends, only its
 * own session is closed. Times are milliseconds of a monotonic clock.
 */
export class WhipSession {
  readonly #options: SessionOptions;
  readonly #dtls: DtlsPeer;
  readonly #media: MediaReceiver;
  readonly #paths = new Map<string, Path>();
  /** Where packets go to. */
  #path: Path | null = null;
  #srtp: SrtpTransport | null = null;
  #isClosed = false;
  /** The publisher has ended: nothing more is received. */
  #isEnding = false;
  /** This server's source id in its reports. */
  readonly #sender = randomInt(1, 2 ** 32);
  readonly #arrivals = new TransportArrivals(this.#sender);
  readonly #reports = new SourceReports();
  readonly #transportExtensions: ReadonlyMap<number, number>;
  readonly #startedAt: number;
  #heardAt: number;
  #mediaAt: number;
  #reportedAt = 0;
  #feedbackAt = 0;

  constructor(options: SessionOptions, now: number) {
    const { werift, identity, negotiated, limits, stream, ffmpeg } = options;
    this.#options = options;
    this.#startedAt = now;
    this.#heardAt = now;
    this.#mediaAt = now;
    const tracks = negotiated.media.flatMap((track) => track ?? []);
    this.#transportExtensions = new Map(
      tracks.flatMap(({ payloadType, extensions: { transportSequence: id } }) =>
        id === null ? [] : [[payloadType, id] as const],
      ),
    );
    this.#media = new MediaReceiver({
      tracks,
      limits,
      stream,
      ffmpeg,
      onAudioError: (error) => this.#log("error", "audio could not be encoded", { error: error.message }),
      onError: (error) => this.#fail(error),
    });
    this.#dtls = new DtlsPeer({
      werift,
      identity,
      fingerprints: negotiated.offer.fingerprints,
      maxPackets: limits.handshakePackets,
      send: (packet) => this.#path?.send(packet),
      onConnect: (srtp) => this.#connected(srtp),
      onClose: () => void this.unpublish(),
      onError: (error) => {
        this.#log("info", "a publisher could not connect", { reason: error.message });
        this.end("disconnected");
      },
    });
  }

  get id(): string {
    return this.#options.id;
  }
  get ufrag(): string {
    return this.#options.ufrag;
  }
  get channel(): string {
    return this.#options.channel;
  }
  /** The ICE user fragment of the peer. */
  get peerUfrag(): string {
    return this.#options.negotiated.offer.ufrag;
  }
  /** Identifiers of its paths. */
  get paths(): Iterable<string> {
    return this.#paths.keys();
  }

  /** A connectivity check. True when it is authentic: packets on this path are the session's then. */
  check(request: BindingRequest, path: Path, now: number): boolean {
    const { password, negotiated, limits } = this.#options;
    if (this.#isClosed || request.peerUfrag !== negotiated.offer.ufrag || !isAuthentic(request, password)) return false;
    this.#heardAt = now;
    if (!this.#paths.has(path.id) && this.#paths.size >= limits.paths) {
      const oldest = [...this.#paths.keys()].find((id) => id !== this.#path?.id);
      if (oldest !== undefined) {
        this.#paths.get(oldest)?.close?.();
        this.#paths.delete(oldest);
      }
    }
    if (!this.#paths.has(path.id)) this.#options.onProgress();
    this.#paths.set(path.id, path);
    if (request.isNominated || this.#path === null) this.#path = path;
    path.send(bindingResponse(request, { ...path, password }));
    return true;
  }

  /** A TCP connection has ended. */
  dropPath(id: string): void {
    this.#paths.delete(id);
    if (this.#path?.id === id) this.#path = [...this.#paths.values()].at(-1) ?? null;
  }

  /** A packet of a path of this session that is not a connectivity check. */
  receive(packet: Buffer, now: number): void {
    if (this.#isClosed || this.#isEnding) return;
    if (isDtls(packet)) return this.#dtls.receive(packet);
    if (!this.#srtp) return;
    try {
      this.#options.rate.addBytes(packet.length);
      this.#options.rate.addMessage();
      if (isRtcp(packet)) this.#receiveRtcp(packet, this.#srtp, now);
      else this.#receiveRtp(packet, this.#srtp, now);
    } catch (error) {
      this.#fail(error);
    }
  }

  /** To be called every 10 ms. */
  tick(now: number): void {
    const { limits } = this.#options;
    if (this.#isClosed || this.#isEnding) return;
    if (!this.#srtp) {
      if (now - this.#startedAt > limits.connectTimeoutMs) this.#timedOut("does not connect in time");
      return;
    }
    if (now - this.#heardAt > limits.peerTimeoutMs) return this.#timedOut("is silent");
    if (now - this.#mediaAt > limits.idleTimeoutMs) return this.#timedOut("sends no audio or video");
    try {
      this.#media.tick(now);
      if (!this.#isClosed) this.#sendFeedback(now);
    } catch (error) {
      this.#fail(error);
    }
  }

  /** Ends the stream as `stopped`. The publisher sees that its connection is lost: WHIP has no message for the reason. */
  stop(reason: string): void {
    if (this.#isClosed) return;
    this.#log("info", "a stream was stopped", { reason });
    this.end("stopped");
  }

  /** The publisher has ended its stream. Resolves when it has ended, with the audio that was being encoded. */
  async unpublish(): Promise<void> {
    if (this.#isClosed || this.#isEnding) return;
    this.#isEnding = true;
    try {
      await this.#media.finish();
    } catch (error) {
      this.#fail(error);
    }
    this.end("unpublished");
  }

  /** Only the first call has an effect. */
  end(end: StreamEnd): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    if (end === "disconnected") this.#flush();
    this.#dtls.close();
    this.#media.close();
    for (const path of this.#paths.values()) path.close?.();
    this.#options.onClose();
    this.#log("info", "a publish has ended", { end, ...this.#reports.totals(this.#media.sources) });
    try {
      this.#options.stream.end(end);
    } catch (error) {
      this.#log("error", "the end of a stream could not be handled", { error: String(error) });
    }
  }

  /** A stream that waits for a reconnect has all that has arrived. */
  #flush(): void {
    try {
      this.#media.flush();
    } catch (error) {
      this.#log("error", "the end of a stream could not be handled", { error: String(error) });
    }
  }

  #connected(srtp: SrtpTransport): void {
    if (!this.#options.onConnect()) return this.stop("Too many publishers are connected, from its address or in all.");
    const now = performance.now();
    this.#srtp = srtp;
    this.#heardAt = now;
    this.#mediaAt = now;
    this.#log("info", "a publish has started", {});
  }

  #receiveRtp(packet: Buffer, srtp: SrtpTransport, now: number): void {
    const plain = srtp.decryptRtp(packet, this.#options.limits.sources);
    const rtp = plain && readRtp(plain);
    if (!rtp) return;
    this.#heardAt = now;
    this.#mediaAt = now;
    const transport = rtp.extensions.get(this.#transportExtensions.get(rtp.payloadType) ?? 0);
    if (transport && transport.length >= 2) this.#arrivals.add(transport.readUInt16BE(0), now);
    this.#reports.received(rtp, now);
    this.#media.receive(rtp, now);
  }

  #receiveRtcp(packet: Buffer, srtp: SrtpTransport, now: number): void {
    const plain = srtp.decryptRtcp(packet);
    if (!plain) return;
    this.#heardAt = now;
    for (const report of readRtcp(plain).reports) {
      this.#reports.reported(report, now);
      this.#media.report(report, now);
    }
  }

  #sendFeedback(now: number): void {
    const { sources } = this.#media;
    const [first] = sources;
    if (!first) return;
    const messages: Buffer[] = [];
    for (const { id, buffer } of sources) {
      const missing = buffer.requests(now);
      if (missing.length > 0) messages.push(nack(this.#sender, id, missing));
    }
    for (const id of this.#media.keyframeRequests(now)) messages.push(keyframeRequest(this.#sender, id));
    if (now - this.#feedbackAt >= FEEDBACK_MS) {
      this.#feedbackAt = now;
      messages.push(...this.#arrivals.take(first.id));
    }
    const isReportDue = now - this.#reportedAt >= REPORT_MS;
    if (messages.length === 0 && !isReportDue) return;
    // A compound packet begins with a report (RFC 3550, 6.1).
    const blocks = isReportDue ? this.#reports.blocks(sources, now) : [];
    if (isReportDue) this.#reportedAt = now;
    this.#sendRtcp(Buffer.concat([receiverReport(this.#sender, blocks), ...messages]));
  }

  #sendRtcp(packet: Buffer): void {
    if (this.#srtp) this.#path?.send(this.#srtp.encryptRtcp(packet));
  }

  #fail(error: unknown): void {
    if (error instanceof RejectedMedia) this.#log("warn", "a stream was rejected", { reason: error.message });
    else this.#log("error", "a stream failed", { error: String(error) });
    this.end("stopped");
  }

  #timedOut(what: string): void {
    this.#log("info", `a publisher ${what}`, {});
    this.end("disconnected");
  }

  #log(level: LogLevel, message: string, fields: Record<string, string | number>): void {
    const { address, channel, log } = this.#options;
    log(level, message, { address, stream: channel, protocol: "whip", ...fields });
  }
}
