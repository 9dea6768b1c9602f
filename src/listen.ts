import { createServer, type Server, type ServerResponse } from "node:http";
import { createServer as createSecureServer } from "node:https";
import type { Logger } from "pino";
import { setTimeout, UserError } from "#lib/base";
import type { Config } from "#platform/config/load.ts";
import { connectionsInAll, limitConnections } from "#platform/http/connection-budget.ts";
import { nodeListener } from "#platform/http/node.ts";
import { watchReading } from "#platform/http/read-in-pieces.ts";
import type { HttpServer } from "#platform/http/server.ts";
import { readPair, tlsFiles, watchPair } from "./tls.ts";

export type Listening = {
  server: Server;
  address: string;
  /** URL of this server on the local machine, without TLS. */
  localAddress: string;
  /** From now on every response closes its connection: the client reconnects to the next server process. */
  beginClose(): void;
  close(graceMs: number): Promise<void>;
};

const OPTIONS = {
  // Node would abort an upload after five minutes; the duration of a body depends on the client's connection.
  requestTimeout: 0,
  headersTimeout: 30_000,
  // Longer than the 60 s after which common proxies drop idle connections, so that the proxy closes first and no
  // request is lost.
  keepAliveTimeout: 65_000,
};
/** Node's default is 120 s, in which a client without a handshake holds a connection. */
const HANDSHAKE_MS = 20_000;

type ListenConfig = Pick<
  Config,
  "host" | "port" | "tls_cert" | "tls_key" | "connections_per_address" | "trusted_proxies"
>;

/**
 * Listens on exactly the host and port of the settings; several processes may share the port. Throws a UserError that
 * says what to do. Uses node:http directly: a listener library took a third of the start time, and chose another port
 * instead of refusing an occupied one.
 */
export async function startListening(
  { host, port, ...config }: ListenConfig,
  http: HttpServer,
  { log, isShared = false }: { log: Logger; isShared?: boolean },
): Promise<Listening> {
  const listener = nodeListener(http.h3);
  const files = tlsFiles(config);
  const limits = {
    perAddress: config.connections_per_address,
    inAll: connectionsInAll(),
    trusted: config.trusted_proxies,
  };
  if (files === null) {
    const server = createServer(OPTIONS, listener);
    watchReading(server);
    limitConnections(server, limits, log);
    const one = await listen(server, { host, port, scheme: "http", isShared });
    return { ...one, localAddress: one.address };
  }
  const server = createSecureServer({ ...OPTIONS, handshakeTimeout: HANDSHAKE_MS, ...readPair(files) }, listener);
  watchReading(server);
  limitConnections(server, limits, log);
  const secure = await listen(server, { host, port, scheme: "https", isShared });
  // For local workers and commands: no certificate is valid for a loopback address.
  const local = await listen(createServer(OPTIONS, listener), { host: "127.0.0.1", port: 0, scheme: "http" });
  const endWatch = watchPair(files, log, (pair) => server.setSecureContext(pair));
  return {
    ...secure,
    localAddress: local.address,
    beginClose() {
      secure.beginClose();
      local.beginClose();
    },
    async close(graceMs) {
      endWatch();
      await Promise.all([secure.close(graceMs), local.close(graceMs)]);
    },
  };
}

type ListenAddress = { host: string; port: number; scheme: "http" | "https"; isShared?: boolean };

/** A free port for processes that will share it: the given one unless it is 0. Throws a UserError. */
export async function freePort({ host, port }: Pick<Config, "host" | "port">): Promise<number> {
  const { server, close } = await listen(createServer(), { host, port, scheme: "http" });
  const address = server.address();
  await close(0);
  return typeof address === "object" && address ? address.port : port;
}

function listen(
  server: Server,
  { host, port, scheme, isShared = false }: ListenAddress,
): Promise<Omit<Listening, "localAddress">> {
  const beginClose = lastAnswers(server);
  return new Promise((resolve, reject) => {
    server.once("error", (error: NodeJS.ErrnoException) => reject(explain(error, host, port)));
    // The kernel distributes connections among the processes that share the port (SO_REUSEPORT).
    server.listen({ port, host, reusePort: isShared }, () => {
      const bound = server.address();
      const name = host.includes(":") ? `[${host}]` : host;
      const address = `${scheme}://${name}:${typeof bound === "object" ? bound?.port : port}`;
      resolve({
        server,
        address,
        beginClose,
        close(graceMs) {
          beginClose();
          return close(server, graceMs);
        },
      });
    });
  });
}

/**
 * Tracks open responses. The returned function makes them, and all later ones, close their connection. Stored in
 * reusable array slots, not a Set: V8 replaces a Set's table every so many insertions, and the old table keeps its
 * responses alive through minor collections. At 2,000 responses a second, each of these took 9 to 12 ms with a Set, and
 * 1 ms with slots.
 */
function lastAnswers(server: Server): () => void {
  const answering: (ServerResponse | null)[] = [];
  const free: number[] = [];
  let closing = false;
  server.prependListener("request", (_, response) => {
    response.shouldKeepAlive &&= !closing;
    const slot = free.pop() ?? answering.length;
    answering[slot] = response;
    response.once("close", () => {
      answering[slot] = null;
      free.push(slot);
    });
  });
  return () => {
    closing = true;
    for (const response of answering) if (response) response.shouldKeepAlive = false;
  };
}

/** Completes open requests, then closes; connections that are still open after `graceMs` are cut. */
function close(server: Server, graceMs: number): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(() => server.closeAllConnections(), graceMs);
    server.close(() => {
      clearTimeout(timer);
      resolve();
    });
    server.closeIdleConnections();
  });
}

function explain(error: NodeJS.ErrnoException, host: string, port: number): UserError {
  if (error.code === "EADDRINUSE") {
    return new UserError(
      `Port ${port} on ${host} is in use; stop the other process or choose another port with --port (0 picks a free one).`,
    );
  }
  if (error.code === "EACCES")
    return new UserError(`This user is not allowed to use port ${port}; choose one above 1023 with --port.`);
  if (error.code === "EADDRNOTAVAIL" || error.code === "ENOTFOUND" || error.code === "EAI_AGAIN") {
    return new UserError(`The address ${host} does not exist on this machine; choose another with --host.`);
  }
  return new UserError(`The server cannot listen on ${host}:${port}: ${error.message}.`);
}
