import http from "node:http";
import https from "node:https";

/** Connections are reused only with the same checked addresses and the same pool. */
type Vetted = { vetted?: string; pool?: string };
const nameWith = (name: string, options: Vetted | undefined) =>
  `${name}:${options?.vetted ?? ""}:${options?.pool ?? ""}`;
class VettedHttpAgent extends http.Agent {
  override getName(options?: Parameters<http.Agent["getName"]>[0] & Vetted): string {
    return nameWith(super.getName(options), options);
  }
}
class VettedHttpsAgent extends https.Agent {
  override getName(options?: https.RequestOptions & Vetted): string {
    return nameWith(super.getName(options), options);
  }
}

type Transport = { agent: http.Agent; request: typeof https.request };
export type Transports = Record<"http:" | "https:", Transport>;

/**
 * HTTP and HTTPS, each with its kept-alive connections. Connections are not limited here: a limit for each host would
 * let one tenant's requests delay another's to the same host, and a request that waits for a socket would use up its
 * time. Callers limit their requests in progress.
 */
export function createTransports({ keepAliveMs }: { keepAliveMs: number }): Transports {
  const pool = { keepAlive: true, timeout: keepAliveMs, maxFreeSockets: 2 };
  return {
    "http:": { agent: new VettedHttpAgent(pool), request: http.request },
    "https:": { agent: new VettedHttpsAgent(pool), request: https.request },
  };
}
