import type { Socket } from "node:net";
import { setTimeout } from "#lib/base";
import type { StreamEnd } from "#lib/codecs";
import {
  type ConnectionLimit,
  type Log,
  type LogLevel,
  type Pending,
  type PublishDecision,
  PublishRate,
  type PublishRequest,
  RejectedMedia,
  type StrangerLog,
} from "#lib/publishing";
import { splitAggregate } from "./aggregate.ts";
import { type AmfObject, stringOf } from "./amf0.ts";
import { ChunkReader } from "./chunk-reader.ts";
import { type Command, readCommand, valuesOf } from "./commands.ts";
import { RtmpFault } from "./fault.ts";
import { Handshake } from "./handshake.ts";
import { IngestStream } from "./ingest-stream.ts";
import type { RtmpLimits } from "./limits.ts";
import { isMedia, MESSAGE, type RtmpMessage, USER_CONTROL } from "./messages.ts";
import { ResponseWriter, WINDOW_BYTES } from "./response-writer.ts";
import { playRefusedStatus, refusedStatus, rejectedStatus, startedStatus, unpublishedStatus } from "./statuses.ts";
import { publishTarget } from "./target.ts";

/** A smaller window of the peer would have us write more than it sends. */
const MIN_WINDOW_BYTES = 16_384;
const LOGGED_CHARACTERS = 200;
const TOO_MANY =
  "Too many publishers are connected, from this address or in all. End one, or raise VODBOX_RTMP_CONNECTIONS_PER_ADDRESS.";

export type SessionOptions = {
  address: string;
  limits: RtmpLimits;
  authorize: (request: PublishRequest) => Promise<PublishDecision>;
  log: Log;
  /** Before a publish is accepted. */
  strangers: StrangerLog;
  limit: ConnectionLimit;
  pending: Pending;
};

/**
 * One connection of a publisher: handshake, connect, publish, then media until it ends. Whatever the peer sends, only its
 * own connection is closed. The socket may be a TLSSocket.
 */
export class Session {
  readonly #socket: Socket;
  readonly #options: SessionOptions;
  readonly #responses: ResponseWriter;
  readonly #handshake = new Handshake((data) => this.#responses.raw(data));
  readonly #reader: ChunkReader;
  #state: "handshake" | "open" | "authorizing" | "publishing" | "closed" = "handshake";
  /** The object of the connect command; null before it. */
  #connect: AmfObject | null = null;
  #stream: IngestStream | null = null;
  /** Name of the stream for the log. */
  #name = "";
  #commands = 0;
  /** Null until the publish is accepted. */
  #rate: PublishRate | null = null;
  #received = 0;
  #acknowledged = 0;
  #windowBytes = WINDOW_BYTES;
  /** Gives the place among the publishers back; null before a publish. */
  #release: (() => void) | null = null;
  /** Until publish, then of idle time, then for the peer to read why it is closed. */
  #timer: NodeJS.Timeout;

  constructor(socket: Socket, options: SessionOptions) {
    const { limits } = options;
    this.#socket = socket;
    this.#options = options;
    this.#responses = new ResponseWriter(socket, limits);
    this.#reader = new ChunkReader({ ...limits, messageBytes: (type) => this.#messageBytes(type) });
    this.#timer = setTimeout(() => this.#timedOut("does not publish in time"), limits.publishTimeoutMs);
    socket
      // Always followed by `close`.
      .on("error", () => {})
      .on("data", (data: Buffer) => this.#guard(() => this.#receive(data)))
      .on("close", () => this.#closed());
  }

  /** Ends the stream as `stopped` and sends `description` as the reason. Closes a connection without a stream. */
  stop(description: string): void {
    this.#finish("stopped", rejectedStatus(description));
  }

  /** Another connection needs its place. */
  displaced(): void {
    this.#log("info", "a connection that does not publish was closed for a new one", {});
    this.#end("disconnected");
    this.#socket.destroy();
  }

  #messageBytes(type: number): number {
    const { mediaBytes, dataBytes, commandBytes } = this.#options.limits;
    if (this.#state !== "publishing") return commandBytes;
    return isMedia(type) ? mediaBytes : dataBytes;
  }

  #receive(data: Buffer): void {
    // What arrives while the peer reads why its connection is closed is discarded.
    if (this.#state === "closed") return;
    this.#received += data.length;
    if (this.#state === "handshake") {
      const rest = this.#handshake.push(data);
      if (rest === null) return;
      this.#state = "open";
      this.#options.pending.advance();
      this.#reader.append(rest);
    } else {
      if (this.#rate) this.#rate.addBytes(data.length);
      else this.#limitCommands();
      this.#reader.append(data);
    }
    this.#drain();
    this.#acknowledge();
  }

  /** Includes messages that the reader applies itself, and which are not counted as commands. */
  #limitCommands(): void {
    const { commands, commandBytes } = this.#options.limits;
    const limit = commands * commandBytes;
    if (this.#received > limit) throw new RtmpFault(`The peer sends more than ${limit} bytes to publish.`);
  }

  /** Handles complete messages, up to a publish whose authorization is pending. */
  #drain(): void {
    while (this.#state === "open" || this.#state === "publishing") {
      const message = this.#reader.next();
      if (message === null) return;
      this.#count();
      this.#handle(message);
    }
  }

  #count(): void {
    if (this.#rate) return this.#rate.addMessage();
    const { commands } = this.#options.limits;
    if (++this.#commands > commands) throw new RtmpFault(`The peer sends more than ${commands} messages to publish.`);
  }

  #handle(message: RtmpMessage): void {
    switch (message.type) {
      case MESSAGE.audio:
      case MESSAGE.video:
        return this.#media(message);
      case MESSAGE.aggregate:
        return this.#aggregate(message);
      case MESSAGE.command:
      case MESSAGE.commandAmf3:
        return this.#command(readCommand(message));
      case MESSAGE.data:
      case MESSAGE.dataAmf3:
        return this.#data(message);
      case MESSAGE.userControl:
        return this.#userControl(message.payload);
      case MESSAGE.windowAcknowledgementSize:
        return this.#setWindow(message.payload);
    }
  }

  #media(message: RtmpMessage): void {
    if (!this.#stream) throw new RtmpFault("The peer sends audio or video before it publishes.");
    this.#timer.refresh();
    this.#stream.media(message);
  }

  #aggregate(message: RtmpMessage): void {
    for (const part of splitAggregate(message)) {
      this.#count();
      if (part.type === MESSAGE.data) this.#data(part);
      else this.#media(part);
      // The sink has stopped the stream.
      if (this.#state !== "publishing") return;
    }
  }

  #data(message: RtmpMessage): void {
    let values: ReturnType<typeof valuesOf>;
    try {
      values = valuesOf(message);
    } catch (error) {
      // Metadata is optional, and some publishers send AMF 3 or private formats.
      if (error instanceof RtmpFault) return;
      throw error;
    }
    this.#stream?.data(values);
  }

  #userControl(payload: Buffer): void {
    if (payload.length < 6 || payload.readUInt16BE() !== USER_CONTROL.pingRequest) return;
    this.#responses.pingResponse(payload.subarray(2, 6));
  }

  #setWindow(payload: Buffer): void {
    if (payload.length < 4) throw new RtmpFault("Window Acknowledgement Size is truncated.");
    this.#windowBytes = Math.max(MIN_WINDOW_BYTES, payload.readUInt32BE());
  }

  #acknowledge(): void {
    if (this.#state === "closed" || this.#received - this.#acknowledged < this.#windowBytes) return;
    this.#acknowledged = this.#received;
    this.#responses.acknowledgement(this.#received);
  }

  #command(command: Command): void {
    if (command.name === "connect") return this.#connected(command);
    if (!this.#connect) throw new RtmpFault("The peer does not begin with connect.");
    switch (command.name) {
      case "releaseStream":
      case "FCPublish":
        return this.#responses.result(command.transactionId, undefined);
      case "createStream":
        return this.#responses.streamCreated(command.transactionId);
      case "publish":
        return this.#publish(command, this.#connect);
      case "play":
      case "play2":
        return this.#finish("stopped", playRefusedStatus());
      case "FCUnpublish":
      case "closeStream":
      case "deleteStream":
        if (this.#stream) this.#finish("unpublished", unpublishedStatus());
    }
  }

  #connected(command: Command): void {
    if (this.#connect) throw new RtmpFault("The peer sends connect twice.");
    this.#connect = command.object;
    this.#options.pending.advance();
    this.#responses.connected(command.transactionId);
  }

  #publish(command: Command, connect: AmfObject): void {
    if (this.#stream) throw new RtmpFault("The peer publishes a second stream.");
    const target = publishTarget(connect, stringOf(command.arguments[0]));
    if (target.name === "") return this.#finish("stopped", refusedStatus("refused"));
    this.#name = target.name;
    if (this.#options.limit.isFull(this.#options.address)) return this.#tooMany();
    this.#options.pending.advance();
    this.#state = "authorizing";
    this.#socket.pause();
    const encoder = stringOf(connect.get("flashVer"));
    void this.#authorize({ ...target, address: this.#options.address, encoder });
  }

  #tooMany(): void {
    this.#log("warn", "a connection exceeds a limit", {});
    this.#finish("stopped", rejectedStatus(TOO_MANY));
  }

  async #authorize(request: PublishRequest): Promise<void> {
    const decision = await this.#decisionOn(request);
    this.#guard(() => {
      if (decision.accepted) {
        this.#stream = new IngestStream(decision.sink);
        if (this.#state !== "authorizing") return this.#stream.end("disconnected");
        this.#release = this.#options.limit.admit(this.#options.address);
        if (this.#release === null) return this.#tooMany();
        this.#start(decision);
      } else if (this.#state === "authorizing") {
        this.#log("info", "a publish was refused", { reason: decision.reason });
        this.#finish("stopped", refusedStatus(decision.reason));
      }
    });
  }

  async #decisionOn(request: PublishRequest): Promise<PublishDecision> {
    try {
      return await this.#options.authorize(request);
    } catch (error) {
      this.#log("error", "a publish could not be authorized", { error: String(error) });
      return { accepted: false, reason: "unavailable" };
    }
  }

  #start({ sink, limits }: Extract<PublishDecision, { accepted: true }>): void {
    this.#state = "publishing";
    const { maxBitrate } = this.#options.limits;
    this.#options.pending.release();
    this.#rate = new PublishRate({ ...this.#options.limits, maxBitrate: limits?.maxBitrate ?? maxBitrate });
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#timedOut("sends no audio or video"), this.#options.limits.idleTimeoutMs);
    this.#responses.streamBegin();
    this.#responses.status(startedStatus());
    this.#log("info", "a publish has started", {});
    sink.onStart?.({ stop: (description) => this.stop(description) });
    this.#drain();
    if (!this.#isClosed()) this.#socket.resume();
  }

  /** A method, since the compiler narrows the property across the calls that change it. */
  #isClosed(): boolean {
    return this.#state === "closed";
  }

  /** Runs `work`; whatever it throws closes this connection only. */
  #guard(work: () => void): void {
    try {
      work();
    } catch (error) {
      this.#fail(error);
    }
  }

  #fail(error: unknown): void {
    if (error instanceof RejectedMedia) {
      this.#log("info", "a stream was rejected", { reason: error.message });
      return this.#finish("stopped", rejectedStatus(error.message));
    }
    const isFault = error instanceof RtmpFault;
    if (isFault) this.#log("info", "a connection violates the protocol", { reason: error.message });
    else this.#log("error", "a stream failed", { error: String(error) });
    this.#end(isFault ? "disconnected" : "stopped");
    this.#socket.destroy();
  }

  #timedOut(what: string): void {
    this.#log("info", `a publisher ${what}`, {});
    this.#end("disconnected");
    this.#socket.destroy();
  }

  /**
   * Ends the stream, sends `status` and closes the connection. The peer has some time to read: closing a socket with
   * unread input would reset the connection, and the peer would lose the status.
   */
  #finish(end: StreamEnd, status: Buffer): void {
    if (this.#state === "closed") return;
    const { closeTimeoutMs } = this.#options.limits;
    if (this.#state !== "handshake") this.#responses.status(status);
    this.#end(end);
    this.#timer = setTimeout(() => this.#socket.destroy(), closeTimeoutMs);
    this.#socket.end();
    this.#socket.resume();
  }

  #closed(): void {
    this.#end("disconnected");
    clearTimeout(this.#timer);
    this.#options.pending.release();
  }

  #end(end: StreamEnd): void {
    if (this.#state === "closed") return;
    this.#state = "closed";
    clearTimeout(this.#timer);
    this.#release?.();
    this.#release = null;
    if (!this.#stream) return;
    this.#log("info", "a publish has ended", { end });
    try {
      this.#stream.end(end);
    } catch (error) {
      this.#log("error", "the end of a stream could not be handled", { error: String(error) });
    }
  }

  #log(level: LogLevel, message: string, fields: Record<string, string>): void {
    const all = { address: this.#options.address, stream: this.#name, ...fields };
    const short = Object.entries(all).map(([name, value]) => [name, value.slice(0, LOGGED_CHARACTERS)] as const);
    const shown = { ...Object.fromEntries(short), address: all.address };
    if (this.#rate) this.#options.log(level, message, shown);
    else this.#options.strangers.write(level, message, shown);
  }
}
