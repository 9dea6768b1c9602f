import type { Server } from "node:http";
import type { Socket } from "node:net";
import { LRUCache } from "lru-cache";
import { networkOf } from "#lib/network";

/** Between two pieces the queue of the connection is looked at. Twenty of the smallest requests, or 170 chunks of one byte. */
const PIECE_BYTES = 1024;
/** Pieces of all connections take so long in one iteration of the event loop, and continue in the next. */
const SLICE_MS = 4;
const SUSPECT_MS = 10 * 60_000;
/** Networks that are remembered, the newest ones; an older one is suspected again with its next flood. */
const MAX_SUSPECTS = 10_000;

/** By connection, what `suspect` calls. */
const suspects = new WeakMap<Socket, () => void>();

/**
 * From now on, and for ten minutes, reads all connections from the address of `socket` (IPv6: its /64) in small pieces: the
 * client has sent more at once than anyone needs.
 */
export const suspect = (socket: Socket): void => suspects.get(socket)?.();

/**
 * Prepares `server` for `suspect`. Node.js reads up to 64 KiB at once and parses all of it: 1,400 of the smallest requests, which
 * costs 10 ms, and a client that disconnects then costs as much again for what it had requested. Pieces cost a
 * microsecond each, so connections of other clients are read as always.
 */
export function watchReading(server: Server): void {
  const until = new LRUCache<string, true>({ max: MAX_SUSPECTS, ttl: SUSPECT_MS });
  const open = new Map<string, Set<Socket>>();
  server.on("setSecureContext" in server ? "secureConnection" : "connection", (socket: Socket) => {
    const { remoteAddress } = socket;
    if (remoteAddress === undefined) return;
    const network = networkOf(remoteAddress);
    const own = open.get(network) ?? new Set();
    open.set(network, own.add(socket));
    socket.once("close", () => {
      own.delete(socket);
      if (own.size === 0 && open.get(network) === own) open.delete(network);
    });
    suspects.set(socket, () => {
      const isNew = !until.has(network);
      until.set(network, true);
      if (isNew) for (const each of open.get(network) ?? []) readInPieces(each);
    });
    if (until.has(network)) readInPieces(socket);
  });
}

type Reader = { next(): void };
/** Connections that are read in pieces. */
const readers = new WeakSet<Socket>();
/** Those with pieces that wait. */
const waiting = new Set<Reader>();
let isScheduled = false;

function schedule(reader: Reader): void {
  waiting.add(reader);
  if (isScheduled) return;
  isScheduled = true;
  setImmediate(passOn);
}

/** One piece of each connection, because Node.js pauses a connection after the work of this iteration only. */
function passOn(): void {
  const until = performance.now() + SLICE_MS;
  isScheduled = false;
  for (const reader of [...waiting]) {
    waiting.delete(reader);
    reader.next();
    if (performance.now() >= until) break;
  }
  const [left] = waiting;
  if (left) schedule(left);
}

/** Passes what arrives on to the parser in pieces, one in each iteration, and reads nothing more until it has taken all. */
function readInPieces(socket: Socket): void {
  if (socket.destroyed || readers.has(socket)) return;
  readers.add(socket);
  const push = socket.push.bind(socket);
  const read = socket._read.bind(socket);
  /** null is the end of the connection. */
  let rest: (Buffer | null)[] = [];
  let wantsRead = false;
  const reader: Reader = {
    next() {
      const [first] = rest;
      if (first === undefined || socket.destroyed) return;
      // Continues at "resume".
      if (socket.isPaused()) return;
      if (first === null || first.length <= PIECE_BYTES) rest.shift();
      else rest[0] = first.subarray(PIECE_BYTES);
      push(first === null ? null : first.subarray(0, PIECE_BYTES));
      if (rest.length > 0) return schedule(reader);
      if (wantsRead) {
        wantsRead = false;
        read(0);
      }
    },
  };
  socket.push = (chunk: Buffer | null) => {
    if (rest.length === 0 && (chunk === null || chunk.length <= PIECE_BYTES)) return push(chunk);
    rest.push(chunk);
    schedule(reader);
    // The socket stops reading.
    return false;
  };
  socket._read = (size: number) => {
    if (rest.length === 0) read(size);
    else wantsRead = true;
  };
  socket.on("resume", () => rest.length > 0 && schedule(reader));
  socket.once("close", () => {
    rest = [];
  });
  // With a listener for data, Node.js no longer reads past the stream of the socket.
  socket.on("data", () => {});
}
