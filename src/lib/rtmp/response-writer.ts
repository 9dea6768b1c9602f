import type { Socket } from "node:net";
import { CHUNK_STREAM, writeChunks } from "./chunk-writer.ts";
import { callResult, connectResult } from "./commands.ts";
import { MESSAGE, USER_CONTROL, uint32s, userControl } from "./messages.ts";

/** Bytes after which each side acknowledges what it has received, until the peer sets another window. */
export const WINDOW_BYTES = 2_500_000;
/** Limit type of Set Peer Bandwidth (RTMP 1.0, 5.4.5): dynamic. */
const DYNAMIC = 2;
/** A connection carries one stream. */
const STREAM_ID = 1;

/** What the server sends on one connection. A peer that does not read more than `unreadBytes` is disconnected. */
export class ResponseWriter {
  readonly #socket: Socket;
  readonly #unreadBytes: number;

  constructor(socket: Socket, { unreadBytes }: { unreadBytes: number }) {
    this.#socket = socket;
    this.#unreadBytes = unreadBytes;
  }

  raw(data: Buffer): void {
    if (!this.#socket.writable) return;
    this.#socket.write(data);
    if (this.#socket.writableLength > this.#unreadBytes) this.#socket.destroy();
  }

  connected(transactionId: number): void {
    this.#control(MESSAGE.windowAcknowledgementSize, uint32s(WINDOW_BYTES));
    this.#control(MESSAGE.setPeerBandwidth, Buffer.concat([uint32s(WINDOW_BYTES), Buffer.from([DYNAMIC])]));
    this.#command(connectResult(transactionId));
  }

  streamCreated(transactionId: number): void {
    this.result(transactionId, STREAM_ID);
  }

  /** Does nothing for a call that expects no response. */
  result(transactionId: number, value: number | undefined): void {
    if (transactionId !== 0) this.#command(callResult(transactionId, value));
  }

  streamBegin(): void {
    this.#control(MESSAGE.userControl, userControl(USER_CONTROL.streamBegin, uint32s(STREAM_ID)));
  }

  /** `data`: the 4 bytes of the request. */
  pingResponse(data: Buffer): void {
    this.#control(MESSAGE.userControl, userControl(USER_CONTROL.pingResponse, data));
  }

  /** `received` in bytes. The sequence number wraps after 4 GiB (RTMP 1.0, 5.4.3). */
  acknowledgement(received: number): void {
    this.#control(MESSAGE.acknowledgement, uint32s(received % 2 ** 32));
  }

  /** An onStatus command. */
  status(payload: Buffer): void {
    this.raw(writeChunks(CHUNK_STREAM.status, { type: MESSAGE.command, streamId: STREAM_ID, payload }));
  }

  #command(payload: Buffer): void {
    this.raw(writeChunks(CHUNK_STREAM.command, { type: MESSAGE.command, streamId: 0, payload }));
  }

  #control(type: number, payload: Buffer): void {
    this.raw(writeChunks(CHUNK_STREAM.control, { type, streamId: 0, payload }));
  }
}
