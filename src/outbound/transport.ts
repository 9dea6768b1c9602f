import http from "node:http";
import https from "node:https";

/** Kept connections are told apart by the addresses that were vetted for them, and by whose they are. */
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
 * Plain and secured, each with its kept connections. Connections are not limited here: a limit for each host would let
 * one tenant's requests delay another's to the same host, and a request that waits for a socket would use up its time.
 * Callers limit their requests in progress.
 */
export function createTransports({ keepAliveMs }: { keepAliveMs: number }): Transports {
  const pool = { keepAlive: true, timeout: keepAliveMs, maxFreeSockets: 2 };
  return {
    "http:": { agent: new VettedHttpAgent(pool), request: http.request },
    "https:": { agent: new VettedHttpsAgent(pool), request: https.request },
  };
}
