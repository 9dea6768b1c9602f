import { createSocket, type Socket } from "node:dgram";
import { once } from "node:events";
import { atEnd } from "../folder.ts";

/*
 * A caller of SRT that sends what a test wants. Packets are written here independently of the server.
 */

const HEADER = 16;
const CONTENT = 48;
const ACKNOWLEDGEMENT = 2;
const SHUTDOWN = 5;
/** What the handshake states by default. */
const FIRST_SEQUENCE = 1000;
const PAYLOAD_BYTES = 7 * 188;
/** Fewer than the socket buffers of a system hold. */
const WINDOW_PACKETS = 64;

export const control = (type: number, destination: number, content: Buffer = Buffer.alloc(0), information = 0) => {
  const header = Buffer.alloc(HEADER);
  header.writeUInt16BE(0x8000 | type);
  header.writeUInt32BE(information, 4);
  header.writeUInt32BE(destination, 12);
  return Buffer.concat([header, content]);
};

export function data(destination: number, sequence: number, payload: Buffer, { timestamp = 0, flags = 0xc0 } = {}) {
  const header = Buffer.alloc(HEADER);
  header.writeUInt32BE(sequence);
  header.writeUInt32BE(1, 4);
  header[4] = flags;
  header.writeUInt32BE(timestamp >>> 0, 8);
  header.writeUInt32BE(destination, 12);
  return Buffer.concat([header, payload]);
}

export type HandshakeFields = {
  version?: number;
  encryption?: number;
  extensionField?: number;
  sequence?: number;
  mtu?: number;
  type?: number;
  socketId?: number;
  cookie?: number;
};

export function handshake(fields: HandshakeFields, ...extensions: Buffer[]): Buffer {
  const { version = 5, encryption = 0, extensionField = 5, sequence = FIRST_SEQUENCE, mtu = 1500 } = fields;
  const { type = 0xffffffff, socketId = 77, cookie = 0 } = fields;
  const content = Buffer.alloc(CONTENT);
  content.writeUInt32BE(version);
  content.writeUInt16BE(encryption, 4);
  content.writeUInt16BE(extensionField, 6);
  for (const [index, word] of [sequence, mtu, 8192, type, socketId, cookie].entries())
    content.writeUInt32BE(word, 8 + 4 * index);
  return control(0, 0, Buffer.concat([content, ...extensions]));
}

export function extension(type: number, content: Buffer): Buffer {
  const padded = Buffer.concat([content, Buffer.alloc((4 - (content.length % 4)) % 4)]);
  const head = Buffer.alloc(4);
  head.writeUInt16BE(type);
  head.writeUInt16BE(padded.length / 4, 2);
  return Buffer.concat([head, padded]);
}

export function text(type: number, value: string): Buffer {
  const bytes = Buffer.from(value);
  return extension(type, Buffer.concat([bytes, Buffer.alloc((4 - (bytes.length % 4)) % 4)]).swap32());
}

/** SRT 1.4.1 with all flags, and the latencies of the receiver and the sender in milliseconds. */
export function request(latencyMs = 120, flags = 0xbf): Buffer {
  const content = Buffer.from("000104010000000000780078", "hex");
  content.writeUInt32BE(flags, 4);
  content.writeUInt16BE(latencyMs, 10);
  return extension(1, content);
}

export const streamId = (value = "publish:live/name:key=x") => text(5, value);

/** What the caller has received, as fields. */
export const typeOf = (packet: Buffer) => packet.readUInt16BE() & 0x7fff;
export const handshakeTypeOf = (packet: Buffer) => packet.readUInt32BE(HEADER + 20);
export const socketIdOf = (packet: Buffer) => packet.readUInt32BE(HEADER + 24);
export const cookieOf = (packet: Buffer) => packet.readUInt32BE(HEADER + 28);

export class SrtClient {
  readonly socket: Socket;
  readonly #port: number;
  #isClosed = false;
  readonly received: Buffer[] = [];
  readonly #waiting = new Set<() => void>();

  private constructor(socket: Socket, port: number) {
    this.socket = socket;
    this.#port = port;
    socket.on("message", (packet) => {
      this.received.push(packet);
      for (const wake of this.#waiting) wake();
    });
  }

  static async open(port: number): Promise<SrtClient> {
    const socket = createSocket("udp4");
    socket.bind(0, "127.0.0.1");
    await once(socket, "listening");
    const client = new SrtClient(socket, port);
    atEnd(() => client.close());
    return client;
  }

  /** Connected, with the socket id of the connection. */
  static async publish(port: number, id?: string): Promise<{ client: SrtClient; destination: number; answer: Buffer }> {
    const client = await SrtClient.open(port);
    const answer = await client.conclude(await client.cookie(), request(), streamId(id));
    return { client, destination: socketIdOf(answer), answer };
  }

  close(): void {
    if (!this.#isClosed) this.socket.close();
    this.#isClosed = true;
  }

  send(...packets: Buffer[]): void {
    for (const packet of packets) this.socket.send(packet, this.#port, "127.0.0.1");
  }

  /** The first packet that is received from now on, or was and is not taken, and matches. It is taken. */
  async next(matches: (packet: Buffer) => boolean = () => true): Promise<Buffer> {
    const { promise, resolve } = Promise.withResolvers<Buffer>();
    const check = () => {
      const index = this.received.findIndex(matches);
      if (index !== -1) resolve(this.received.splice(index, 1)[0] as Buffer);
    };
    this.#waiting.add(check);
    check();
    try {
      return await promise;
    } finally {
      this.#waiting.delete(check);
    }
  }

  /**
   * Sends a stream, from the sequence number of the handshake on, as fast as it is acknowledged. `isAwaited`: resolves when all of it
   * is.
   */
  async stream(destination: number, bytes: Buffer, { isAwaited = true } = {}): Promise<void> {
    let acknowledged = FIRST_SEQUENCE;
    const read = () => {
      for (const packet of this.received.splice(0))
        if (typeOf(packet) === ACKNOWLEDGEMENT) acknowledged = Math.max(acknowledged, packet.readUInt32BE(HEADER));
    };
    let sequence = FIRST_SEQUENCE;
    for (let at = 0; at < bytes.length; at += PAYLOAD_BYTES, sequence++) {
      this.send(data(destination, sequence, bytes.subarray(at, at + PAYLOAD_BYTES)));
      while (isAwaited && sequence + 1 - acknowledged >= WINDOW_PACKETS) {
        await this.#arrived();
        read();
      }
    }
    while (isAwaited && acknowledged < sequence) {
      await this.#arrived();
      read();
    }
  }

  shutdown(destination: number): void {
    this.send(control(SHUTDOWN, destination));
  }

  /** Resolves with the next packet. */
  async #arrived(): Promise<void> {
    if (this.received.length > 0) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#waiting.add(resolve);
    await promise;
    this.#waiting.delete(resolve);
  }

  async cookie(): Promise<number> {
    this.send(handshake({ version: 4, extensionField: 2, type: 1 }));
    return cookieOf(await this.next((packet) => typeOf(packet) === 0));
  }

  async conclude(cookie: number, ...extensions: Buffer[]): Promise<Buffer> {
    this.send(handshake({ cookie }, ...extensions));
    return this.next((packet) => typeOf(packet) === 0);
  }
}
