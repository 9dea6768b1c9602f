import { randomInt } from "node:crypto";
import { createSocket, type RemoteInfo, type Socket } from "node:dgram";
import { lookup } from "node:dns/promises";
import { setInterval } from "#lib/base";
import { plainAddress } from "#lib/network";
import {
  ConnectionLimit,
  type Log,
  PendingConnections,
  type PublishDecision,
  type PublishRequest,
  StrangerLog,
} from "#lib/publishing";
import { CookieJar } from "./cookie.ts";
import {
  type Extensions,
  HANDSHAKE_TYPE,
  type Handshake,
  inductionAnswer,
  isPossibleMtu,
  isSupportedVersion,
  readExtensions,
  readHandshake,
  rejection,
} from "./handshake.ts";
import { HandshakeRate } from "./handshake-rate.ts";
import { DEFAULT_LIMITS, type SrtLimits } from "./limits.ts";
import { CONTROL, controlTypeOf, destinationOf, HEADER_BYTES, isControl, MAX_PACKET_BYTES } from "./packets.ts";
import { REJECTION } from "./rejections.ts";
import { type Peer, Session, type SessionOptions } from "./session.ts";
import { readStreamId, type StreamTarget } from "./stream-id.ts";

const TICK_MS = 10;
/** The system's buffer for what arrives while the process is busy. The kernel may allow less. */
const RECEIVE_BUFFER_BYTES = 4 * 1024 * 1024;

export type SrtServerOptions = {
  /** Decides on a publish. An exception refuses it as `unavailable`. */
  authorize: (request: PublishRequest) => Promise<PublishDecision>;
  /** Callers have to encrypt with it; null: they may not encrypt. */
  passphrase?: string | null;
  /** Those that differ from DEFAULT_LIMITS. */
  limits?: Partial<SrtLimits>;
  log?: Log;
};

export type SrtServer = {
  /** Rejects when the address cannot be used. Port 0: any free port. */
  listen(port: number, host: string): Promise<void>;
  /** 0 while it does not listen. */
  readonly port: number;
  /** Open connections, those that are being refused included. */
  readonly connections: number;
  /** Stops all streams (`stopped`) and resolves when the port is closed. */
  close(): Promise<void>;
};

/**
 * An SRT listener that only accepts publishers of MPEG-TS in live mode (draft-sharabayko-srt-01). Before a caller has
 * returned a cookie, nothing is kept of it, and no answer is larger than what it answers.
 * @example
 * const server = createSrtServer({ authorize: async () => ({ accepted: false, reason: "unavailable" }) });
 * await server.listen(0, "127.0.0.1");
 * server.port > 0 // => true
 * await server.close();
 */
export function createSrtServer(options: SrtServerOptions): SrtServer {
  return new Listener(options);
}

class Listener implements SrtServer {
  readonly #limits: SrtLimits;
  readonly #authorize: SrtServerOptions["authorize"];
  readonly #passphrase: string | null;
  readonly #log: Log;
  readonly #cookies = new CookieJar();
  readonly #rate: HandshakeRate;
  readonly #limit: ConnectionLimit;
  readonly #pendings: PendingConnections;
  readonly #strangers: StrangerLog;
  readonly #sessions = new Map<number, Session>();
  /** By the caller and its socket id, for repeated handshakes. */
  readonly #callers = new Map<string, Session>();
  #socket: Socket | null = null;
  /** Runs while there are connections. */
  #timer: NodeJS.Timeout | null = null;

  constructor({ authorize, passphrase = null, limits, log = () => {} }: SrtServerOptions) {
    this.#passphrase = passphrase;
    this.#authorize = authorize;
    this.#limits = { ...DEFAULT_LIMITS, ...limits };
    this.#log = log;
    this.#rate = new HandshakeRate(this.#limits);
    this.#limit = new ConnectionLimit(this.#limits);
    this.#pendings = new PendingConnections(this.#limits);
    this.#strangers = new StrangerLog(log);
  }

  async listen(port: number, host: string): Promise<void> {
    const { address, family } = await lookup(host);
    const socket = createSocket({
      type: family === 6 ? "udp6" : "udp4",
      recvBufferSize: RECEIVE_BUFFER_BYTES,
      // All addresses are numeric: they need no resolver for each packet.
      lookup: (hostname, _, callback) => callback(null, hostname, family),
    });
    await new Promise<void>((resolve, reject) => {
      socket.once("error", reject);
      socket.bind(port, address, () => {
        socket.off("error", reject);
        resolve();
      });
    });
    socket
      .on("error", (error) => this.#log("error", "the SRT server failed", { error: error.message }))
      .on("message", (packet, from) => this.#receive(packet, from));
    this.#socket = socket;
  }

  get port(): number {
    return this.#socket?.address().port ?? 0;
  }

  get connections(): number {
    return this.#sessions.size;
  }

  async close(): Promise<void> {
    for (const session of [...this.#sessions.values()]) session.stop("The server is shutting down.");
    const socket = this.#socket;
    this.#socket = null;
    // Packets that have been sent are passed to the system first.
    if (socket) await new Promise<void>((resolve) => setImmediate(() => socket.close(resolve)));
  }

  #receive(packet: Buffer, from: RemoteInfo): void {
    if (packet.length < HEADER_BYTES || packet.length > MAX_PACKET_BYTES || from.port === 0) return;
    const destination = destinationOf(packet);
    if (destination !== 0) {
      const session = this.#sessions.get(destination);
      // Another sender that knows the number is not the publisher.
      if (session?.isOf(from)) session.receive(packet, performance.now());
    } else if (isControl(packet) && controlTypeOf(packet) === CONTROL.handshake) this.#handshake(packet, from);
  }

  #handshake(packet: Buffer, from: RemoteInfo): void {
    const handshake = readHandshake(packet);
    if (handshake === null) return;
    const { address, port } = from;
    const now = performance.now();
    if (handshake.type === HANDSHAKE_TYPE.induction) {
      if (!this.#rate.allowsInduction(now)) return;
      return this.#send(inductionAnswer(handshake, address, this.#cookies.create(address, port, now)), from);
    }
    if (handshake.type !== HANDSHAKE_TYPE.conclusion) return;
    if (!this.#cookies.isValid(handshake.cookie, { address, port, now })) return;
    const caller = `${address}|${port}|${handshake.socketId}`;
    const existing = this.#callers.get(caller);
    if (existing) return existing.repeatAnswer(packet.length);
    if (!this.#rate.allowsConclusion(from, now)) return;
    const extensions = readExtensions(packet);
    const target = extensions ? this.#targetOf(handshake, extensions) : REJECTION.rogue;
    if (typeof target === "number") return this.#reject(handshake, from, target);
    const { latencyMs = 0, keyMaterial = null } = extensions ?? {};
    this.#open(caller, { handshake, target, latencyMs: latencyMs ?? 0, keyMaterial, from });
  }

  /** What the caller wants to publish, or why not. */
  #targetOf(handshake: Handshake, extensions: Extensions): StreamTarget | number {
    if (!isSupportedVersion(handshake) || extensions.latencyMs === null) return REJECTION.version;
    if (!isPossibleMtu(handshake)) return REJECTION.rogue;
    const isEncrypted = extensions.keyMaterial !== null || handshake.encryption !== 0;
    if (isEncrypted !== (this.#passphrase !== null)) return REJECTION.encryption;
    if (extensions.isStreamMode) return REJECTION.messageApi;
    if (extensions.congestion !== "live") return REJECTION.congestion;
    if (extensions.hasFilter) return REJECTION.filter;
    if (extensions.isGroup) return REJECTION.group;
    return readStreamId(extensions.streamId);
  }

  #reject(handshake: Handshake, from: RemoteInfo, reason: number): void {
    const { address } = from;
    this.#strangers.write("info", "a connection was rejected", { address: plainAddress(address), reason });
    this.#send(rejection(handshake, address, reason), from);
  }

  #open(
    caller: string,
    {
      from,
      ...accepted
    }: Pick<SessionOptions, "handshake" | "target" | "latencyMs" | "keyMaterial"> & { from: RemoteInfo },
  ): void {
    const { address, port } = from;
    const pending = this.#pendings.add(plainAddress(address), () => session.displaced());
    const socketId = this.#freeId();
    const peer: Peer = { address, port };
    const session: Session = new Session(
      {
        peer,
        socketId,
        ...accepted,
        passphrase: this.#passphrase,
        limits: this.#limits,
        authorize: this.#authorize,
        log: this.#log,
        strangers: this.#strangers,
        limit: this.#limit,
        pending,
        send: (packet) => this.#send(packet, peer),
        onClose: () => {
          pending.release();
          this.#sessions.delete(socketId);
          this.#callers.delete(caller);
          if (this.#sessions.size === 0) this.#stopTimer();
        },
      },
      performance.now(),
    );
    this.#sessions.set(socketId, session);
    this.#callers.set(caller, session);
    this.#timer ??= setInterval(() => this.#tick(), TICK_MS);
  }

  #tick(): void {
    const now = performance.now();
    for (const session of this.#sessions.values()) session.tick(now);
  }

  #stopTimer(): void {
    if (this.#timer) clearInterval(this.#timer);
    this.#timer = null;
  }

  /** Random, so that others cannot guess it. Two high bits mark groups of connections in libraries. */
  #freeId(): number {
    let id = randomInt(1, 2 ** 30);
    while (this.#sessions.has(id)) id = randomInt(1, 2 ** 30);
    return id;
  }

  #send(packet: Buffer, { address, port }: Peer): void {
    // A packet that cannot be sent is a lost packet.
    this.#socket?.send(packet, port, address, () => {});
  }
}
