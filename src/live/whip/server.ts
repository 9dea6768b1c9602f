import { randomInt } from "node:crypto";
import { createSocket, type RemoteInfo, type Socket as UdpSocket } from "node:dgram";
import { lookup } from "node:dns/promises";
import { createServer, type Socket, type Server as TcpServer } from "node:net";
import { randomName, setInterval, setTimeout } from "#lib/base";
import { plainAddress } from "#lib/network";
import {
  ConnectionLimit,
  type Log,
  PendingConnections,
  type PublishDecision,
  PublishRate,
  type PublishRequest,
  PublishStream,
  type RefusalReason,
} from "#lib/publishing";
import { announcedAddresses } from "./addresses.ts";
import { type Candidate, writeAnswer } from "./answer.ts";
import { createIdentity, type DtlsIdentity } from "./dtls.ts";
import { FramedConnection } from "./framed-connection.ts";
import { DEFAULT_LIMITS, type WhipLimits } from "./limits.ts";
import type { WhipAnswer, WhipErrorStatus, WhipRequest } from "./messages.ts";
import { type Negotiated, negotiate, OfferNotAcceptable } from "./negotiation.ts";
import { OfferInvalid, readOffer } from "./offer.ts";
import { type Path, WhipSession } from "./session.ts";
import { isStun, readBindingRequest } from "./stun.ts";
import type { Werift } from "./werift.ts";

const TICK_MS = 10;
/** The system's buffer for what arrives while the process is busy. The kernel may allow less. */
const RECEIVE_BUFFER_BYTES = 4 * 1024 * 1024;
/** A port that is free for UDP may not be free for TCP. */
const PORT_TRIES = 10;
const SESSION_CHARACTERS = 32;
const UFRAG_CHARACTERS = 16;
const PASSWORD_CHARACTERS = 32;
/** The application that channels are published to, as with RTMP. */
const APPLICATION = "live";

export type WhipServerOptions = {
  authorize: (request: PublishRequest) => Promise<PublishDecision>;
  /** Addresses that answers contain; empty: all addresses of this machine. */
  addresses: readonly string[];
  /** Path of the program that encodes audio. */
  ffmpeg: string;
  /** Limits that differ from DEFAULT_LIMITS. */
  limits?: Partial<WhipLimits>;
  log?: Log;
};

export type WhipServer = {
  /** Rejects when the address cannot be used. Port 0: any free port. */
  listen(port: number, host: string): Promise<void>;
  /** 0 while it does not listen. */
  readonly port: number;
  /** Answers an HTTP request. Never rejects. */
  handle(request: WhipRequest): Promise<WhipAnswer>;
  /** Stops all streams (`stopped`) and resolves when the port is closed. */
  close(): Promise<void>;
};

const REFUSALS: Record<RefusalReason, { status: WhipErrorStatus; message: string }> = {
  refused: { status: 401, message: "The channel or its stream key is wrong. Copy the key again." },
  taken: {
    status: 409,
    message: "Another publisher is sending to this channel. Stop it first, or allow takeover for the channel.",
  },
  limit: { status: 403, message: "The plan's limit of concurrent live streams is reached. End another stream." },
  throttled: { status: 429, message: "Too many wrong stream keys were sent from this address. Try again in a minute." },
  unavailable: { status: 503, message: "The server cannot accept a stream at this time. Try again in a minute." },
};

const noSession = { status: 404, message: "There is no such session; it may have ended." } as const;

/**
 * Receives publishers over WebRTC: all of them on one port, by UDP or TCP. Packets from addresses without a valid connectivity
 * check are read as such a check, and dropped.
 */
export async function createWhipServer(options: WhipServerOptions): Promise<WhipServer> {
  const werift = await import("werift");
  return new Listener(options, werift, await createIdentity(werift));
}

class Listener implements WhipServer {
  readonly #options: WhipServerOptions;
  readonly #werift: Werift;
  readonly #identity: DtlsIdentity;
  readonly #limits: WhipLimits;
  readonly #log: Log;
  readonly #limit: ConnectionLimit;
  readonly #pendings: PendingConnections;
  /** Sessions whose peer is not connected yet: their publisher is known, but may send any number of offers. */
  readonly #offers: PendingConnections;
  readonly #sessions = new Map<string, WhipSession>();
  readonly #byUfrag = new Map<string, WhipSession>();
  readonly #byPath = new Map<string, WhipSession>();
  readonly #connections = new Set<Socket>();
  #udp: UdpSocket | null = null;
  #tcp: TcpServer | null = null;
  #host = "";
  /** Runs while there are sessions. */
  #timer: NodeJS.Timeout | null = null;

  constructor(options: WhipServerOptions, werift: Werift, identity: DtlsIdentity) {
    this.#options = options;
    this.#werift = werift;
    this.#identity = identity;
    this.#limits = { ...DEFAULT_LIMITS, ...options.limits };
    this.#log = options.log ?? (() => {});
    this.#limit = new ConnectionLimit(this.#limits);
    this.#pendings = new PendingConnections(this.#limits);
    this.#offers = new PendingConnections(this.#limits);
  }

  get port(): number {
    return this.#udp?.address().port ?? 0;
  }

  async listen(port: number, host: string): Promise<void> {
    const { address, family } = await lookup(host);
    this.#host = address;
    for (let tries = 1; this.#udp === null; tries++) {
      const udp = await bindUdp(port, address, family);
      try {
        this.#tcp = await listenTcp(udp.address().port, address);
        this.#udp = udp;
      } catch (error) {
        udp.close();
        if (port !== 0 || tries >= PORT_TRIES) throw error;
      }
    }
    this.#udp
      .on("error", (error) => this.#log("error", "the WHIP server failed", { error: error.message }))
      .on("message", (packet, from) => this.#receive(packet, this.#udpPath(from)));
    this.#tcp
      ?.on("error", (error) => this.#log("error", "the WHIP server failed", { error: error.message }))
      .on("connection", (socket) => this.#connected(socket));
  }

  async handle(request: WhipRequest): Promise<WhipAnswer> {
    try {
      if (request.action === "publish") return await this.#publish(request);
      const session = this.#sessions.get(request.session);
      if (session?.channel !== request.channel) return noSession;
      if (request.action === "end") {
        await session.unpublish();
        return { status: 200 };
      }
      return this.#trickle(session, request.fragment);
    } catch (error) {
      if (error instanceof OfferInvalid) return { status: 400, message: error.message };
      if (error instanceof OfferNotAcceptable) return { status: 406, message: error.message };
      this.#log("error", "a WHIP request failed", { error: String(error) });
      return REFUSALS.unavailable;
    }
  }

  async close(): Promise<void> {
    for (const session of [...this.#sessions.values()]) session.stop("The server is shutting down.");
    for (const socket of this.#connections) socket.destroy();
    const { promise, resolve } = Promise.withResolvers<void>();
    const udp = this.#udp;
    this.#udp = null;
    if (this.#tcp) this.#tcp.close(() => (udp ? udp.close(resolve) : resolve()));
    else resolve();
    await promise;
  }

  async #publish(request: Extract<WhipRequest, { action: "publish" }>): Promise<WhipAnswer> {
    const { channel, key, address, encoder } = request;
    const negotiated = negotiate(readOffer(request.offer));
    if (this.#limit.isFull(address)) return this.#tooMany();
    const decision = await this.#options.authorize({
      app: APPLICATION,
      name: channel,
      query: new URLSearchParams({ key }),
      address,
      encoder,
    });
    if (!decision.accepted) return REFUSALS[decision.reason];
    const stream = new PublishStream(decision.sink);
    if (!this.#udp) {
      stream.end("disconnected");
      return REFUSALS.unavailable;
    }
    return this.#open({ channel, address, negotiated, stream, decision });
  }

  #tooMany(): WhipAnswer {
    const message =
      "Too many publishers are connected, from this address or in all. End one, or raise VODBOX_RTMP_CONNECTIONS_PER_ADDRESS.";
    return { status: 503, message };
  }

  #open({
    decision,
    ...opened
  }: {
    channel: string;
    address: string;
    negotiated: Negotiated;
    stream: PublishStream;
    decision: Extract<PublishDecision, { accepted: true }>;
  }): WhipAnswer {
    const [id, ufrag, password] = [SESSION_CHARACTERS, UFRAG_CHARACTERS, PASSWORD_CHARACTERS].map(randomName) as [
      string,
      string,
      string,
    ];
    const maxBitrate = decision.limits?.maxBitrate ?? this.#limits.maxBitrate;
    const offer = this.#offers.add(opened.address, () => session.end("disconnected"));
    let release: (() => void) | null = null;
    const session: WhipSession = new WhipSession(
      {
        ...opened,
        id,
        ufrag,
        password,
        werift: this.#werift,
        identity: this.#identity,
        ffmpeg: this.#options.ffmpeg,
        limits: this.#limits,
        log: this.#log,
        rate: new PublishRate({ ...this.#limits, maxBitrate }),
        onProgress: () => offer.advance(),
        onConnect: () => {
          offer.release();
          release = this.#limit.admit(opened.address);
          return release !== null;
        },
        onClose: () => {
          offer.release();
          release?.();
          this.#forget(session);
        },
      },
      performance.now(),
    );
    this.#sessions.set(id, session);
    this.#byUfrag.set(ufrag, session);
    this.#timer ??= setInterval(() => this.#tick(), TICK_MS);
    decision.sink.onStart?.({ stop: (reason) => session.stop(reason) });
    const answer = writeAnswer(opened.negotiated, {
      sessionId: String(randomInt(1, 2 ** 47)),
      ufrag,
      password,
      fingerprint: this.#identity.fingerprint,
      candidates: this.#candidates(),
    });
    return { status: 201, session: id, answer };
  }

  /** The client sends the checks, so its candidates need not be known. New credentials would be a restart (RFC 9725, 4.3.2). */
  #trickle(session: WhipSession, fragment: string): WhipAnswer {
    const ufrag = /^a=ice-ufrag:([^\r\n]{1,256})/m.exec(fragment.slice(0, MAX_FRAGMENT_CHARACTERS))?.[1];
    if (ufrag === undefined || ufrag === session.peerUfrag) return { status: 204 };
    return { status: 422, message: "ICE restarts are not supported. Send a new offer." };
  }

  #candidates(): Candidate[] {
    const addresses = announcedAddresses(this.#host, this.#options.addresses);
    const { port } = this;
    return [
      ...addresses.map((address) => ({ address, port, transport: "udp" as const })),
      ...addresses.map((address) => ({ address, port, transport: "tcp" as const })),
    ];
  }

  #receive(packet: Buffer, path: Path): boolean {
    const now = performance.now();
    if (!isStun(packet)) {
      const session = this.#byPath.get(path.id);
      session?.receive(packet, now);
      return session !== undefined;
    }
    const request = readBindingRequest(packet);
    const session = request && this.#byUfrag.get(request.ufrag);
    if (!session?.check(request as NonNullable<typeof request>, path, now)) return false;
    this.#byPath.set(path.id, session);
    return true;
  }

  #udpPath({ address, port }: RemoteInfo): Path {
    return {
      id: `udp|${address}|${port}`,
      address: plainAddress(address),
      port,
      // A packet that cannot be sent is a lost packet.
      send: (packet) => this.#udp?.send(packet, port, address, () => {}),
    };
  }

  #connected(socket: Socket): void {
    const address = plainAddress(socket.remoteAddress ?? "");
    const port = socket.remotePort ?? 0;
    const id = `tcp|${address}|${port}`;
    let isChecked = false;
    const pending = this.#pendings.add(address, () => socket.destroy());
    const timer = setTimeout(() => socket.destroy(), this.#limits.connectTimeoutMs);
    this.#connections.add(socket);
    const close = () => connection.close();
    const connection = new FramedConnection(socket, (packet) => {
      const isKnown = this.#receive(packet, { id, address, port, send: (answer) => connection.send(answer), close });
      if (!isKnown && !isChecked) return void socket.destroy();
      if (isChecked || !isKnown) return;
      isChecked = true;
      clearTimeout(timer);
      pending.release();
    });
    socket
      .setNoDelay(true)
      .on("error", () => {})
      .on("close", () => {
        clearTimeout(timer);
        pending.release();
        this.#connections.delete(socket);
        this.#byPath.get(id)?.dropPath(id);
        this.#byPath.delete(id);
      });
  }

  #tick(): void {
    const now = performance.now();
    for (const session of [...this.#sessions.values()]) session.tick(now);
  }

  #forget(session: WhipSession): void {
    this.#sessions.delete(session.id);
    this.#byUfrag.delete(session.ufrag);
    for (const path of session.paths) if (this.#byPath.get(path) === session) this.#byPath.delete(path);
    if (this.#sessions.size > 0 || !this.#timer) return;
    clearInterval(this.#timer);
    this.#timer = null;
  }
}

const MAX_FRAGMENT_CHARACTERS = 65_536;

async function bindUdp(port: number, address: string, family: number): Promise<UdpSocket> {
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
  return socket;
}

async function listenTcp(port: number, address: string): Promise<TcpServer> {
  const server = createServer();
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(port, address, () => {
      server.off("error", reject);
      resolve();
    });
  });
  return server;
}
