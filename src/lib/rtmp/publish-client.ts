import type { Socket } from "node:net";
import { setTimeout } from "#lib/base";
import { RateWindow } from "#lib/publishing";
import { type AmfObject, type AmfValue, amfObject, encodeAmf0, stringOf } from "./amf0.ts";
import { ChunkReader } from "./chunk-reader.ts";
import { CHUNK_STREAM, DEFAULT_CHUNK_BYTES, writeChunks } from "./chunk-writer.ts";
import { type Command, readCommand } from "./commands.ts";
import { RtmpFault } from "./fault.ts";
import { ClientHandshake } from "./handshake.ts";
import { MESSAGE, type RtmpMessage, USER_CONTROL, uint32s, userControl } from "./messages.ts";

/** The size of a chunk of media. Larger ones are refused by some servers. */
const CHUNK_BYTES = 4096;
/** What a server may send: responses, acknowledgements and pings. */
const LIMITS = { chunkStreams: 16, bufferedBytes: 64 * 1024, messageBytes: () => 16 * 1024 };
const MAX_BYTES = 256 * 1024;
const WINDOW_SECONDS = 10;
const MAX_DESCRIPTION = 200;
/** Shorter parts of a stream key are words, as `key`, or names. */
const SECRET_PART = 12;
/** How long the server has to read the end of the stream. */
const CLOSE_MS = 3000;
const TRANSACTION = { connect: 1, createStream: 4 } as const;
const MEDIA_CHUNK_STREAM: Record<number, number> = {
  [MESSAGE.audio]: CHUNK_STREAM.audio,
  [MESSAGE.video]: CHUNK_STREAM.video,
};

export type PublishClientOptions = {
  app: string;
  /** The URL without the stream key. */
  tcUrl: string;
  streamKey: string;
  /** FourCCs of Enhanced RTMP that the stream uses. */
  fourCcs: string[];
  /** Called once, when the server has accepted the stream. */
  onAccepted: () => void;
  /** More can be written after `write` has returned false. */
  onDrain: () => void;
  /** Called once, and last, when the connection has ended. Not after `close`. */
  onEnd: (end: PublishEnd) => void;
};

/** Why a connection has ended, in words for a person. `isRefused`: the server does not want this stream. */
export type PublishEnd = { reason: string; isRefused: boolean };

/**
 * One stream published to another server (RTMP 1.0, 7.2) over a connected socket, which may be a TLSSocket. Whatever the
 * server sends, only this connection ends.
 */
export class PublishClient {
  readonly #socket: Socket;
  readonly #options: PublishClientOptions;
  readonly #handshake = new ClientHandshake((data) => this.#raw(data));
  readonly #reader = new ChunkReader(LIMITS);
  readonly #received = new RateWindow(WINDOW_SECONDS, performance.now());
  #state: "handshake" | "connecting" | "creating" | "publishing" | "accepted" | "closed" = "handshake";
  #chunkBytes = DEFAULT_CHUNK_BYTES;
  #streamId = 0;
  #writtenBytes = 0;
  /** The message of the socket's last error. */
  #failure: string | null = null;

  constructor(socket: Socket, options: PublishClientOptions) {
    this.#socket = socket;
    this.#options = options;
    socket
      .on("error", ({ code }: NodeJS.ErrnoException) => {
        this.#failure = `The connection failed${code ? ` (${code})` : ""}.`;
      })
      .on("data", (data: Buffer) => this.#guard(() => this.#receive(data)))
      .on("drain", () => this.#options.onDrain())
      .on("close", () => this.#closed());
    this.#handshake.start();
  }

  get isAccepted(): boolean {
    return this.#state === "accepted";
  }

  /** Bytes that the operating system has taken. */
  get sentBytes(): number {
    return Math.max(0, this.#writtenBytes - this.#socket.writableLength);
  }

  get canWrite(): boolean {
    return this.isAccepted && !this.#socket.writableNeedDrain;
  }

  /** An audio, video or data message of an accepted stream. `timestamp` in unsigned 32-bit milliseconds. */
  write({ type, timestamp, payload }: Pick<RtmpMessage, "type" | "timestamp" | "payload">): void {
    const chunkStream = MEDIA_CHUNK_STREAM[type] ?? CHUNK_STREAM.audio;
    this.#raw(writeChunks(chunkStream, { type, timestamp, payload, streamId: this.#streamId }, this.#chunkBytes));
  }

  /** Ends the stream after what was written. Resolves when the connection is closed, within a few seconds. */
  async finish(): Promise<void> {
    const socket = this.#socket;
    if (socket.destroyed) return;
    const wasAccepted = this.isAccepted;
    this.#state = "closed";
    const { promise, resolve } = Promise.withResolvers<void>();
    const timer = setTimeout(() => socket.destroy(), CLOSE_MS);
    socket.once("close", () => {
      clearTimeout(timer);
      resolve();
    });
    if (wasAccepted) {
      this.#command("FCUnpublish", 0, null, this.#options.streamKey);
      this.#command("deleteStream", 0, null, this.#streamId);
    }
    socket.end();
    socket.resume();
    await promise;
  }

  /** Ends the connection at once. */
  close(): void {
    this.#state = "closed";
    this.#socket.destroy();
  }

  #receive(data: Buffer): void {
    if (this.#state === "closed") return;
    if (this.#received.add(data.length, performance.now()) > MAX_BYTES)
      throw new RtmpFault("The server sends too much.");
    if (this.#state === "handshake") {
      const rest = this.#handshake.push(data);
      if (rest === null) return;
      this.#connect();
      this.#reader.append(rest);
    } else this.#reader.append(data);
    for (let message = this.#reader.next(); message; message = this.#reader.next()) {
      this.#handle(message);
      if (this.#isClosed()) return;
    }
  }

  #connect(): void {
    this.#state = "connecting";
    const { app, tcUrl, fourCcs } = this.#options;
    const fields: Record<string, AmfValue> = {
      app,
      type: "nonprivate",
      flashVer: "FMLE/3.0 (compatible; vodbox)",
      tcUrl,
    };
    // Some servers do not know it, and need not for H.264.
    if (fourCcs.length > 0) fields.fourCcList = fourCcs;
    this.#command("connect", TRANSACTION.connect, amfObject(fields));
  }

  #handle(message: RtmpMessage): void {
    const { type, payload } = message;
    if (type === MESSAGE.command || type === MESSAGE.commandAmf3) return this.#answer(readCommand(message));
    if (type !== MESSAGE.userControl || payload.length < 6) return;
    if (payload.readUInt16BE() === USER_CONTROL.pingRequest)
      this.#control(MESSAGE.userControl, userControl(USER_CONTROL.pingResponse, payload.subarray(2, 6)));
  }

  #answer({ name, transactionId, object, arguments: [info] }: Command): void {
    const answer = info instanceof Map ? info : null;
    if (name === "_result") {
      if (transactionId === TRANSACTION.connect && this.#state === "connecting") this.#connected(answer);
      else if (transactionId === TRANSACTION.createStream && this.#state === "creating") this.#created(info);
    } else if (name === "_error") {
      // Servers that do not know releaseStream and FCPublish answer so.
      const isFatal = transactionId === TRANSACTION.connect || transactionId === TRANSACTION.createStream;
      if (isFatal) this.#refused(answer ?? object);
    } else if (name === "onStatus") this.#status(answer ?? object);
    else if (name === "close") this.#end({ reason: "The server has ended the stream.", isRefused: false });
  }

  #connected(info: AmfObject | null): void {
    if (stringOf(info?.get("level")) === "error") return this.#refused(info as AmfObject);
    const { streamKey } = this.#options;
    this.#state = "creating";
    this.#control(MESSAGE.setChunkSize, uint32s(CHUNK_BYTES));
    this.#chunkBytes = CHUNK_BYTES;
    this.#command("releaseStream", 2, null, streamKey);
    this.#command("FCPublish", 3, null, streamKey);
    this.#command("createStream", TRANSACTION.createStream, null);
  }

  #created(id: AmfValue): void {
    if (typeof id !== "number" || !(id >= 0 && id < 2 ** 32)) throw new RtmpFault("The server creates no stream.");
    this.#streamId = Math.floor(id);
    this.#state = "publishing";
    this.#command("publish", 5, null, this.#options.streamKey, "live");
  }

  #status(info: AmfObject): void {
    if (stringOf(info.get("level")) === "error") return this.#refused(info);
    if (this.#state !== "publishing" || stringOf(info.get("code")) !== "NetStream.Publish.Start") return;
    this.#state = "accepted";
    this.#options.onAccepted();
  }

  #refused(info: AmfObject): void {
    const said = this.#printable(stringOf(info.get("description")) || stringOf(info.get("code")));
    this.#end({ reason: said === "" ? "The server refuses the stream." : `The server says: ${said}`, isRefused: true });
  }

  /** What a server says is shown to a person: one line, and never the stream key, which it may repeat. */
  #printable(text: string): string {
    const { streamKey } = this.#options;
    // Before it is cut, which would leave a part of a key; and its parts, because a server may name the stream without the query.
    const secrets = [streamKey, ...streamKey.split(/[?&=/]/).filter((part) => part.length >= SECRET_PART)];
    return secrets
      .reduce((clean, secret) => clean.replaceAll(secret, "…"), text)
      .slice(0, 4 * MAX_DESCRIPTION)
      .replaceAll(/[^\p{L}\p{N}\p{P}\p{S} ]+/gu, " ")
      .trim()
      .slice(0, MAX_DESCRIPTION);
  }

  #command(name: string, transactionId: number, ...values: AmfValue[]): void {
    const isOfStream = name === "publish";
    const streamId = isOfStream ? this.#streamId : 0;
    const payload = encodeAmf0(name, transactionId, ...values);
    this.#raw(writeChunks(CHUNK_STREAM.command, { type: MESSAGE.command, streamId, payload }, this.#chunkBytes));
  }

  #control(type: number, payload: Buffer): void {
    this.#raw(writeChunks(CHUNK_STREAM.control, { type, streamId: 0, payload }, this.#chunkBytes));
  }

  #raw(data: Buffer): void {
    if (!this.#socket.writable) return;
    this.#writtenBytes += data.length;
    this.#socket.write(data);
  }

  /** A method, since the compiler narrows the property across the calls that change it. */
  #isClosed(): boolean {
    return this.#state === "closed";
  }

  #guard(work: () => void): void {
    try {
      work();
    } catch (error) {
      const reason = error instanceof RtmpFault ? error.message : "The server's answer could not be read.";
      this.#end({ reason, isRefused: false });
    }
  }

  #closed(): void {
    const isEarly = this.#state !== "accepted";
    const reason = isEarly
      ? "The server closed the connection before it accepted the stream. Check the URL and the stream key."
      : "The server closed the connection.";
    this.#end({ reason: this.#failure ?? reason, isRefused: isEarly && this.#failure === null });
  }

  #end(end: PublishEnd): void {
    if (this.#state === "closed") return;
    this.close();
    this.#options.onEnd(end);
  }
}
