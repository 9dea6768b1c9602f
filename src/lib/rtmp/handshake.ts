import { randomBytes } from "node:crypto";
import { RtmpFault } from "./fault.ts";

/** Version of C0 and S0 (RTMP 1.0, 5.2.2). 6 and above are the encrypted variants, which RTMPS replaces. */
const VERSION = 3;
/** C1, C2, S1 and S2 (5.2.3, 5.2.4). */
const BLOCK_BYTES = 1536;
const SENT_BYTES = 1 + BLOCK_BYTES + BLOCK_BYTES;

/** A version, a time of 0, four zeros and random bytes: C0 and C1, or S0 and S1. */
function greeting(): Buffer {
  const bytes = Buffer.alloc(1 + BLOCK_BYTES);
  bytes[0] = VERSION;
  randomBytes(BLOCK_BYTES - 8).copy(bytes, 1 + 8);
  return bytes;
}

/** Client side of the simple handshake (RTMP 1.0, 5.2). */
export class ClientHandshake {
  readonly #received = Buffer.alloc(SENT_BYTES);
  #length = 0;
  readonly #send: (data: Buffer) => void;

  constructor(send: (data: Buffer) => void) {
    this.#send = send;
  }

  /** Sends C0 and C1. */
  start(): void {
    this.#send(greeting());
  }

  /**
   * Returns null until S2 is complete, then sends C2 and returns the bytes after it. Throws RtmpFault at the first byte
   * when the peer does not speak RTMP. What S2 repeats is not compared: servers with the digest variant send another one.
   */
  push(data: Buffer): Buffer | null {
    if (this.#length === 0 && data.length > 0 && data[0] !== VERSION)
      throw new RtmpFault("The server does not speak RTMP.");
    const copied = data.copy(this.#received, this.#length);
    this.#length += copied;
    if (this.#length < SENT_BYTES) return null;
    // C2 repeats S1.
    this.#send(Buffer.from(this.#received.subarray(1, 1 + BLOCK_BYTES)));
    return data.subarray(copied);
  }
}

/**
 * Server side of the simple handshake (RTMP 1.0, 5.2). The digest variant that Flash Player requires to play H.264 is not
 * needed by publishers: zeros in S1 select the simple one.
 */
export class Handshake {
  readonly #received = Buffer.alloc(SENT_BYTES);
  #length = 0;
  readonly #reply: (data: Buffer) => void;

  /** `reply` is called once with S0, S1 and S2 when C1 is complete. */
  constructor(reply: (data: Buffer) => void) {
    this.#reply = reply;
  }

  /**
   * Returns null until C2 is complete, then the bytes after it. Throws RtmpFault at the first byte when the peer does not
   * speak RTMP.
   */
  push(data: Buffer): Buffer | null {
    if (this.#length === 0 && data.length > 0 && data[0] !== VERSION)
      throw new RtmpFault("The peer does not speak RTMP version 3.");
    const before = this.#length;
    const copied = data.copy(this.#received, before);
    this.#length += copied;
    const afterC1 = 1 + BLOCK_BYTES;
    if (before < afterC1 && this.#length >= afterC1) this.#reply(this.#answer());
    return this.#length === SENT_BYTES ? data.subarray(copied) : null;
  }

  /** S2 repeats C1, with the time at which it was read: 0. */
  #answer(): Buffer {
    const answer = Buffer.concat([greeting(), this.#received.subarray(1, 1 + BLOCK_BYTES)]);
    answer.writeUInt32BE(0, 1 + BLOCK_BYTES + 4);
    return answer;
  }
}
