import type { Server, ServerResponse } from "node:http";
import { createServer } from "node:net";
import { toNodeHandler } from "h3";
import { listen } from "listhen";
import type { Config } from "./config/load.ts";
import type { HttpServer } from "./http/server.ts";
import { UserError } from "./lib/errors.ts";

export type Listening = {
  server: Server;
  address: string;
  /** From now on every answer is the last one on its connection: the client asks whoever comes next. */
  beginClose(): void;
  close(graceMs: number): Promise<void>;
};

/** Tries again when another process took the free port between its being found and its being used. */
const FREE_PORT_TRIES = 5;

/** Listens on host and port of the settings, on exactly that port. Throws a UserError that says what to do. */
export async function startListening(config: Config, http: HttpServer): Promise<Listening> {
  const handler = toNodeHandler(http.h3) as Parameters<typeof listen>[0];
  for (let attempt = 1; ; attempt++) {
    try {
      const { server } = await listen(handler, {
        hostname: config.host,
        port:
          config.port === 0
            ? { port: 0, random: true }
            : { port: config.port, portRange: [config.port, config.port], random: false },
        public: config.host !== "127.0.0.1" && config.host !== "localhost" && config.host !== "::1",
        isProd: true,
        isTest: false,
        showURL: false,
        autoClose: false,
      });
      return wrap(server as Server, config.host);
    } catch (error) {
      if (config.port === 0 && attempt < FREE_PORT_TRIES) continue;
      throw explain((await refusal(config)) ?? (error as Error), config);
    }
  }
}

function wrap(server: Server, host: string): Listening {
  // Node would cut an upload after five minutes; how long a body may take is the client's line's affair.
  server.requestTimeout = 0;
  server.headersTimeout = 30_000;
  // Longer than the 60 s after which common proxies drop idle connections, so that they close first and lose nothing.
  server.keepAliveTimeout = 65_000;
  // listhen's shutdown helper, which close() does without, throws where a request was given up before its answer was
  // out; nothing catches that, and the process would end. The first listener is our own.
  for (const listener of server.listeners("request").slice(1)) server.off("request", listener as () => void);
  const found = server.address();
  const port = typeof found === "object" && found ? found.port : 0;
  const name = host.includes(":") ? `[${host}]` : host;
  const beginClose = lastAnswers(server);
  return {
    server,
    address: `http://${name}:${port}`,
    beginClose,
    close(graceMs) {
      beginClose();
      return close(server, graceMs);
    },
  };
}

/** Knows what is being answered. The function that it gives has those answers and all later ones close their connection. */
function lastAnswers(server: Server): () => void {
  const answering = new Set<ServerResponse>();
  let closing = false;
  server.prependListener("request", (_, response) => {
    response.shouldKeepAlive &&= !closing;
    answering.add(response);
    response.once("close", () => answering.delete(response));
  });
  return () => {
    closing = true;
    for (const response of answering) response.shouldKeepAlive = false;
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

/** What the system says to listening there: listhen only says that it found no port. */
function refusal({ host, port }: Config): Promise<Error | null> {
  return new Promise((resolve) => {
    const probe = createServer();
    probe.once("error", resolve);
    probe.listen(port, host, () => probe.close(() => resolve(null)));
  });
}

function explain(error: NodeJS.ErrnoException, { host, port }: Config): UserError {
  const text = `${error.code ?? ""} ${error.message}`;
  if (/EADDRINUSE|Unable to find an available port/i.test(text)) {
    return new UserError(
      `Port ${port} on ${host} is in use; stop what holds it or choose another with --port (0 picks a free one).`,
    );
  }
  if (/EACCES/.test(text))
    return new UserError(`Port ${port} may not be used by this user; choose one above 1023 with --port.`);
  if (/EADDRNOTAVAIL|ENOTFOUND|EAI_/.test(text))
    return new UserError(`This machine has no address ${host}; choose another with --host.`);
  return new UserError(`The server cannot listen on ${host}:${port}: ${error.message}.`);
}
