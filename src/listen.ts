import { createServer, type Server, type ServerResponse } from "node:http";
import { createServer as createSecureServer } from "node:https";
import type { Logger } from "pino";
import type { Config } from "./config/load.ts";
import { nodeListener } from "./http/node.ts";
import type { HttpServer } from "./http/server.ts";
import { UserError } from "./lib/errors.ts";
import { readPair, tlsFiles, watchPair } from "./tls.ts";

export type Listening = {
  server: Server;
  address: string;
  /** Where this machine reaches it without TLS. */
  localAddress: string;
  /** From now on every answer is the last one on its connection: the client asks whoever comes next. */
  beginClose(): void;
  close(graceMs: number): Promise<void>;
};

const OPTIONS = {
  // Node would cut an upload after five minutes; how long a body may take is the client's line's affair.
  requestTimeout: 0,
  headersTimeout: 30_000,
  // Longer than the 60 s after which common proxies drop idle connections, so that they close first and lose nothing.
  keepAliveTimeout: 65_000,
};

/**
 * Listens on host and port of the settings, on exactly that port, which several processes may share. Throws a UserError that says what to do. Plain
 * node:http: a listener library took a third of the start, and looked for free ports instead of refusing a taken one.
 */
export async function startListening(
  { host, port, ...config }: Pick<Config, "host" | "port" | "tls_cert" | "tls_key">,
  http: HttpServer,
  { log, isShared = false }: { log: Logger; isShared?: boolean },
): Promise<Listening> {
  const listener = nodeListener(http.h3);
  const files = tlsFiles(config);
  if (files === null) {
    const one = await listen(createServer(OPTIONS, listener), { host, port, scheme: "http", isShared });
    return { ...one, localAddress: one.address };
  }
  const server = createSecureServer({ ...OPTIONS, ...readPair(files) }, listener);
  const secure = await listen(server, { host, port, scheme: "https", isShared });
  // Local workers and commands: nobody's certificate is for a loopback address.
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

type Place = { host: string; port: number; scheme: "http" | "https"; isShared?: boolean };

/** A port that nobody has, for processes that will share it: the given one unless that is 0. Throws a UserError. */
export async function freePort({ host, port }: Pick<Config, "host" | "port">): Promise<number> {
  const { server, close } = await listen(createServer(), { host, port, scheme: "http" });
  const found = server.address();
  await close(0);
  return typeof found === "object" && found ? found.port : port;
}

function listen(
  server: Server,
  { host, port, scheme, isShared = false }: Place,
): Promise<Omit<Listening, "localAddress">> {
  const beginClose = lastAnswers(server);
  return new Promise((resolve, reject) => {
    server.once("error", (error: NodeJS.ErrnoException) => reject(explain(error, host, port)));
    // The kernel gives each connection to one of those that share the port (SO_REUSEPORT).
    server.listen({ port, host, reusePort: isShared }, () => {
      const found = server.address();
      const name = host.includes(":") ? `[${host}]` : host;
      const address = `${scheme}://${name}:${typeof found === "object" ? found?.port : port}`;
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
 * Knows what is being answered. The function that it gives has those answers and all later ones close their connection.
 * In places that are used again, not in a Set: V8 leaves a table of those behind with every so many additions, which keeps
 * the next one, and the answers in both, through its quick collections. At 2,000 answers a second each of these stood still
 * for 9 to 12 ms with a Set, and for 1 ms with places.
 */
function lastAnswers(server: Server): () => void {
  const answering: (ServerResponse | null)[] = [];
  const free: number[] = [];
  let closing = false;
  server.prependListener("request", (_, response) => {
    response.shouldKeepAlive &&= !closing;
    const place = free.pop() ?? answering.length;
    answering[place] = response;
    response.once("close", () => {
      answering[place] = null;
      free.push(place);
    });
  });
  return () => {
    closing = true;
    for (const response of answering) if (response) response.shouldKeepAlive = false;
  };
}

/** Answers what is being asked, then closes; what is still open after `graceMs` is cut. */
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
      `Port ${port} on ${host} is in use; stop what holds it or choose another with --port (0 picks a free one).`,
    );
  }
  if (error.code === "EACCES")
    return new UserError(`Port ${port} may not be used by this user; choose one above 1023 with --port.`);
  if (error.code === "EADDRNOTAVAIL" || error.code === "ENOTFOUND" || error.code === "EAI_AGAIN") {
    return new UserError(`This machine has no address ${host}; choose another with --host.`);
  }
  return new UserError(`The server cannot listen on ${host}:${port}: ${error.message}.`);
}
