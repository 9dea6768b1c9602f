import type { Socket } from "node:net";
import { setTimeout } from "#lib/base";

/** A packet of media has at most 1,500 bytes; an encoder may send larger ones. */
const MAX_PACKET_BYTES = 16 * 1024;
/** What the peer has not read. More is dropped: the media are not in this direction. */
const MAX_UNREAD_BYTES = 256 * 1024;
const LENGTH_BYTES = 2;
/** How long a peer has to read what was sent before the connection is closed. */
const CLOSE_MS = 1000;

/** Packets over TCP, each after its length in two bytes (RFC 4571, RFC 6544). */
export class FramedConnection {
  readonly #socket: Socket;
  #rest: Buffer = Buffer.alloc(0);

  constructor(socket: Socket, onPacket: (packet: Buffer) => void) {
    this.#socket = socket;
    socket.on("data", (data: Buffer) => {
      if (!this.#read(data, onPacket)) socket.destroy();
    });
  }

  send(packet: Buffer): void {
    if (this.#socket.destroyed || this.#socket.writableLength > MAX_UNREAD_BYTES) return;
    const length = Buffer.alloc(LENGTH_BYTES);
    length.writeUInt16BE(packet.length);
    this.#socket.write(Buffer.concat([length, packet]));
  }

  /** After what was sent, if the peer reads it soon. */
  close(): void {
    const timer = setTimeout(() => this.#socket.destroy(), CLOSE_MS).unref();
    this.#socket.once("close", () => clearTimeout(timer));
    this.#socket.destroySoon();
  }

  /** False for a packet that is too large. */
  #read(data: Buffer, onPacket: (packet: Buffer) => void): boolean {
    const all = this.#rest.length > 0 ? Buffer.concat([this.#rest, data]) : data;
    let at = 0;
    while (at + LENGTH_BYTES <= all.length) {
      const length = all.readUInt16BE(at);
      if (length > MAX_PACKET_BYTES) return false;
      const end = at + LENGTH_BYTES + length;
      if (end > all.length) break;
      // A copy: what is kept of a packet must not keep the others.
      onPacket(Buffer.from(all.subarray(at + LENGTH_BYTES, end)));
      at = end;
    }
    this.#rest = Buffer.from(all.subarray(at));
    return true;
  }
}
