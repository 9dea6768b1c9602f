import { once } from "node:events";
import { connect as connectTcp, type Socket } from "node:net";
import { connect as connectTls } from "node:tls";
import { type AmfObject, type AmfValue, amfObject, decodeAmf0, encodeAmf0 } from "#src/lib/rtmp/amf0.ts";
import { ChunkReader } from "#src/lib/rtmp/chunk-reader.ts";
import { atEnd } from "../folder.ts";

/** Fields of a chunk's message header; `time` is a timestamp in format 0, else a delta. */
export type ChunkHeader = { time?: number; length?: number; type?: number; streamId?: number };

const CONTROL = { setChunkSize: 1, userControl: 4 };
export const AUDIO = 8;
export const VIDEO = 9;
export const AGGREGATE = 22;
const PING_RESPONSE = 7;
const STREAM_ID = 1;
const MEDIA_CHUNK_STREAM = 6;

/** One chunk (RTMP 1.0, 5.3.1). A `time` of 0xffffff or more is written as extended timestamp, in format 3 as well. */
export function chunk(format: 0 | 1 | 2 | 3, chunkStream: number, header: ChunkHeader, payload: Buffer): Buffer {
  const { time = 0, length = payload.length, type = VIDEO, streamId = STREAM_ID } = header;
  const isExtended = time >= 0xffffff;
  const bytes: number[] =
    chunkStream < 64
      ? [(format << 6) | chunkStream]
      : chunkStream < 320
        ? [format << 6, chunkStream - 64]
        : [(format << 6) | 1, (chunkStream - 64) & 255, (chunkStream - 64) >> 8];
  const field = isExtended ? 0xffffff : time;
  if (format < 3) bytes.push(field >> 16, (field >> 8) & 255, field & 255);
  if (format < 2) bytes.push(length >> 16, (length >> 8) & 255, length & 255, type);
  if (format === 0) bytes.push(streamId & 255, (streamId >> 8) & 255, (streamId >> 16) & 255, streamId >>> 24);
  const extended = Buffer.alloc(isExtended ? 4 : 0);
  if (isExtended) extended.writeUInt32BE(time);
  return Buffer.concat([Buffer.from(bytes), extended, payload]);
}

/** A whole message: a chunk of format 0, then of format 3. */
export function message(header: ChunkHeader, payload: Buffer, { chunkStream = 3, chunkBytes = 128 } = {}): Buffer {
  const first = chunk(0, chunkStream, { ...header, length: payload.length }, payload.subarray(0, chunkBytes));
  const parts = [first];
  for (let at = chunkBytes; at < payload.length; at += chunkBytes)
    parts.push(chunk(3, chunkStream, header, payload.subarray(at, at + chunkBytes)));
  return Buffer.concat(parts);
}

export const command = (name: string, transactionId: number, ...values: AmfValue[]) =>
  message({ type: 20, streamId: 0 }, encodeAmf0(name, transactionId, ...values));

/** `chunkBytes`: the chunk size before it. */
export const setChunkSize = (bytes: number, chunkBytes = 128) => {
  const payload = Buffer.alloc(4);
  payload.writeUInt32BE(bytes);
  return message({ type: CONTROL.setChunkSize, streamId: 0 }, payload, { chunkStream: 2, chunkBytes });
};

export const pingRequest = (time: number) => {
  const payload = Buffer.from([0, 6, 0, 0, 0, 0]);
  payload.writeUInt32BE(time, 2);
  return message({ type: CONTROL.userControl, streamId: 0 }, payload, { chunkStream: 2 });
};

/** C0, C1 and C2. The server sends S0 to S2 without waiting for more. */
export const handshakeBytes = () => {
  const bytes = Buffer.alloc(1 + 1536 * 2, 7);
  bytes[0] = 3;
  return bytes;
};

export type Target = { app?: string; tcUrl?: string; name?: string };

/** The commands until publish, as ffmpeg and OBS send them. */
export const publishBytes = ({ app = "live", tcUrl = "rtmp://127.0.0.1/live", name = "name?key=x" }: Target = {}) =>
  Buffer.concat([
    command("connect", 1, amfObject({ app, tcUrl, flashVer: "test/1.0", type: "nonprivate" })),
    command("releaseStream", 2, null, name),
    command("FCPublish", 3, null, name),
    command("createStream", 4, null),
    command("publish", 5, null, name, "live"),
  ]);

export const media = (type: number, time: number, payload: Buffer, chunkBytes = 128) =>
  message({ type, time }, payload, { chunkStream: MEDIA_CHUNK_STREAM, chunkBytes });

/** A publisher. Waits are limited by the timeout of the test. */
export class RtmpClient {
  readonly #socket: Socket;
  readonly #reader = new ChunkReader({ chunkStreams: 8, bufferedBytes: 1 << 20, messageBytes: () => 1 << 16 });
  #handshakeRest = 1 + 1536 * 2;
  readonly #received: { type: number; payload: Buffer }[] = [];
  #wake = () => {};
  /** Resolves when the server has closed the connection. */
  readonly closed: Promise<void>;

  private constructor(socket: Socket) {
    this.#socket = socket;
    socket
      .setNoDelay(true)
      .on("error", () => {})
      .on("data", (data: Buffer) => this.#receive(data));
    this.closed = new Promise((resolve) => {
      socket.once("close", () => {
        resolve();
        this.#wake();
      });
    });
    atEnd(() => socket.destroy());
  }

  /** Connects without a handshake. */
  static async open(port: number, { tls = false } = {}): Promise<RtmpClient> {
    const to = { port, host: "127.0.0.1" };
    const socket = tls ? connectTls({ ...to, rejectUnauthorized: false }) : connectTcp(to);
    const client = new RtmpClient(socket);
    await once(socket, tls ? "secureConnect" : "connect");
    return client;
  }

  /** Connects, publishes and waits for NetStream.Publish.Start. */
  static async publish(port: number, target: Target & { tls?: boolean } = {}): Promise<RtmpClient> {
    const client = await RtmpClient.open(port, target);
    client.write(handshakeBytes(), publishBytes(target));
    const { code } = await client.status();
    if (code !== "NetStream.Publish.Start") throw new Error(`The server answers ${code}.`);
    return client;
  }

  write(...data: Buffer[]): void {
    this.#socket.write(Buffer.concat(data));
  }

  media(type: number, time: number, payload: Buffer): void {
    this.write(media(type, time, payload));
  }

  /** Stops reading what the server sends. */
  pause(): void {
    this.#socket.pause();
  }

  /** Closes the connection without a command. */
  destroy(): void {
    this.#socket.destroy();
  }

  /** The next message of a type. Throws when the server closes the connection before. */
  async next(type: number): Promise<Buffer> {
    for (;;) {
      const index = this.#received.findIndex((each) => each.type === type);
      if (index !== -1) return (this.#received.splice(index, 1)[0] as { payload: Buffer }).payload;
      if (this.#socket.destroyed) throw new Error(`The connection was closed without a message of type ${type}.`);
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
  }

  /** Resolves when the server has read all that was written. */
  async answered(): Promise<void> {
    this.write(pingRequest(1));
    while ((await this.next(CONTROL.userControl)).readUInt16BE() !== PING_RESPONSE);
  }

  /** The next command with this name: its values. */
  async response(name: string): Promise<AmfValue[]> {
    for (;;) {
      const values = decodeAmf0(await this.next(20));
      if (values[0] === name) return values;
    }
  }

  async status(): Promise<{ level: AmfValue; code: AmfValue; description: string }> {
    const object = (await this.response("onStatus"))[3] as AmfObject;
    return { level: object.get("level"), code: object.get("code"), description: String(object.get("description")) };
  }

  #receive(data: Buffer): void {
    const skipped = Math.min(this.#handshakeRest, data.length);
    this.#handshakeRest -= skipped;
    this.#reader.append(data.subarray(skipped));
    for (let each = this.#reader.next(); each; each = this.#reader.next()) this.#received.push(each);
    this.#wake();
  }
}
