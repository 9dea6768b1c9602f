import http from "node:http";
import https from "node:https";

/** Kept connections are told apart by the addresses that were vetted for them. */
type Vetted = { vetted?: string };
const nameWith = (name: string, options: Vetted | undefined) => `${name}:${options?.vetted ?? ""}`;
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

type Way = { agent: http.Agent; request: typeof https.request };
export type Ways = Record<"http:" | "https:", Way>;

/** Plain and secured, each with its kept connections. */
export function openWays({ keepAliveMs, maxSockets }: { keepAliveMs: number; maxSockets: number }): Ways {
  const pool = { keepAlive: true, timeout: keepAliveMs, maxFreeSockets: 2, maxSockets };
  return {
    "http:": { agent: new VettedHttpAgent(pool), request: http.request },
    "https:": { agent: new VettedHttpsAgent(pool), request: https.request },
  };
}
