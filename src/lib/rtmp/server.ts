import { type AddressInfo, createServer, type Socket } from "node:net";
import { createSecureContext, type SecureContext, TLSSocket } from "node:tls";
import { plainAddress } from "#lib/network";
import {
  ConnectionLimit,
  type Log,
  PendingConnections,
  type PublishDecision,
  type PublishRequest,
  StrangerLog,
} from "#lib/publishing";
import { DEFAULT_LIMITS, type RtmpLimits } from "./limits.ts";
import { Session } from "./session.ts";

/** PEM. */
export type KeyPair = { key: string | Buffer; cert: string | Buffer };

export type RtmpServerOptions = {
  /**
   * Decides on a publish; the publisher is not read from meanwhile. An exception refuses it as `unavailable`. When the
   * publisher has disconnected before the decision, an accepted sink only receives `onEnd("disconnected")`.
   */
  authorize: (request: PublishRequest) => Promise<PublishDecision>;
  /** Those that differ from DEFAULT_LIMITS. */
  limits?: Partial<RtmpLimits>;
  /** Present: the server speaks RTMPS only. */
  tls?: KeyPair;
  log?: Log;
};

export type RtmpServer = {
  /** Rejects when the address cannot be used. Port 0: any free port. */
  listen(port: number, host: string): Promise<void>;
  /** 0 while it does not listen. */
  readonly port: number;
  /** Open connections, those that are being closed included. */
  readonly connections: number;
  /** Certificate of new connections. Throws when key and certificate do not match. */
  setTls(pair: KeyPair): void;
  /** Stops all streams (`stopped`) and resolves when all connections are closed, within `closeTimeoutMs`. */
  close(): Promise<void>;
};

/**
 * An RTMP or RTMPS server that only accepts publishers (RTMP 1.0, Enhanced RTMP 2).
 * @example
 * const server = createRtmpServer({ authorize: async () => ({ accepted: false, reason: "unavailable" }) });
 * await server.listen(0, "127.0.0.1");
 * server.port > 0 // => true
 * await server.close();
 */
export function createRtmpServer({ authorize, limits, tls, log = () => {} }: RtmpServerOptions): RtmpServer {
  const allLimits = { ...DEFAULT_LIMITS, ...limits };
  let secureContext: SecureContext | null = tls ? createSecureContext(tls) : null;
  /** Each with the end of its connection. */
  const sessions = new Map<Session, Promise<void>>();
  const limit = new ConnectionLimit(allLimits);
  const pendings = new PendingConnections(allLimits);
  const strangers = new StrangerLog(log);

  const server = createServer((raw) => {
    const address = addressOf(raw);
    if (address === null) return void raw.destroy();
    const pending = pendings.add(address, () => session.displaced());
    raw.setNoDelay(true);
    const socket = secureContext ? secure(raw, secureContext) : raw;
    const session = new Session(socket, { address, limits: allLimits, authorize, log, strangers, limit, pending });
    const { promise: closed, resolve } = Promise.withResolvers<void>();
    sessions.set(session, closed);
    socket.once("close", () => {
      sessions.delete(session);
      resolve();
    });
  });

  return {
    listen: (port, host) =>
      new Promise((resolve, reject) => {
        server.once("error", reject);
        server.listen(port, host, () => {
          server.off("error", reject);
          server.on("error", (error) => log("error", "the RTMP server failed", { error: error.message }));
          resolve();
        });
      }),
    get port() {
      return (server.address() as AddressInfo | null)?.port ?? 0;
    },
    get connections() {
      return sessions.size;
    },
    setTls(pair) {
      secureContext = createSecureContext(pair);
    },
    async close() {
      const stopped = new Promise<void>((resolve) => server.close(() => resolve()));
      for (const session of sessions.keys()) session.stop("The server is shutting down. Reconnect in a minute.");
      await Promise.all([stopped, ...sessions.values()]);
    },
  };
}

/** The timeout until publish also limits the TLS handshake. */
function secure(raw: Socket, secureContext: SecureContext): Socket {
  raw.on("error", () => {});
  return new TLSSocket(raw, { isServer: true, secureContext });
}

/** Null when the peer has disconnected already. */
function addressOf({ remoteAddress }: Socket): string | null {
  return remoteAddress === undefined ? null : plainAddress(remoteAddress);
}
