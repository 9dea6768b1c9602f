import { createServer, type Server } from "node:http";
import type { Config } from "./config/load.ts";
import { nodeListener } from "./http/node.ts";
import type { HttpServer } from "./http/server.ts";
import { UserError } from "./lib/errors.ts";

export type Listening = { server: Server; address: string; close(graceMs: number): Promise<void> };

/**
 * Listens on host and port of the settings, on exactly that port. Throws a UserError that says what to do. Plain
 * node:http: a listener library took a third of the start, and looked for free ports instead of refusing a taken one.
 */
export function startListening({ host, port }: Pick<Config, "host" | "port">, http: HttpServer): Promise<Listening> {
  const server = createServer(
    {
      // Node would cut an upload after five minutes; how long a body may take is the client's line's affair.
      requestTimeout: 0,
      headersTimeout: 30_000,
      // Longer than the 60 s after which common proxies drop idle connections, so that they close first and lose nothing.
      keepAliveTimeout: 65_000,
    },
    nodeListener(http.h3),
  );
  return new Promise((resolve, reject) => {
    server.once("error", (error: NodeJS.ErrnoException) => reject(explain(error, host, port)));
    server.listen(port, host, () => {
      const found = server.address();
      const name = host.includes(":") ? `[${host}]` : host;
      const address = `http://${name}:${typeof found === "object" ? found?.port : port}`;
      resolve({ server, address, close: (graceMs) => close(server, graceMs) });
    });
  });
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
