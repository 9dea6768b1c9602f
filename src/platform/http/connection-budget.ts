import { readFileSync } from "node:fs";
import type { Server } from "node:http";
import type { Socket } from "node:net";
import type { Logger } from "pino";
import { isInRanges, networkOf, plainAddress, rangesOf } from "#lib/network";
import { StrangerLog } from "#lib/publishing";

export type ConnectionLimits = {
  /** Open connections of one IPv4 address, or one /64 of IPv6. */
  perAddress: number;
  /** Open connections of all together. */
  inAll: number;
  /** Proxies (CIDR ranges): their connections are those of many clients. */
  trusted: readonly string[];
};

const keyOf = ({ remoteAddress, remotePort, localAddress, localPort }: Socket) =>
  `${remoteAddress} ${remotePort} ${localAddress} ${localPort}`;

/** The oldest connections that are looked at, so that a flood from many addresses costs the same for each connection. */
const LOOKED_AT = 64;
const RETRY_SECONDS = 5;
const ERROR = JSON.stringify({
  error: `Too many connections are open from this address; try again in ${RETRY_SECONDS} s.`,
  code: "rate_limited",
});
const RESPONSE = [
  "HTTP/1.1 429 Too Many Requests",
  "Connection: close",
  "Content-Type: application/json; charset=utf-8",
  `Content-Length: ${ERROR.length}`,
  "Cache-Control: no-store",
  `Retry-After: ${RETRY_SECONDS}`,
  "",
  ERROR,
].join("\r\n");

/** `http`: what responses are sent through, once that is known. Node's response in progress is undocumented (one-after-another.ts). */
type Entry = { raw: Socket; network: string; http: (Socket & { _httpMessage?: unknown }) | null };

/**
 * Limits the open connections of `server`, whether they have sent a request or not. One address has at most `perAddress`; more
 * are refused with 429, or closed where TLS has not begun. When all together are as many as `inAll`, one is closed for a new
 * one: without a response in progress if possible, of the address that has the most. The machine itself and proxies are not limited.
 */
export function limitConnections(server: Server, { perAddress, inAll, trusted }: ConnectionLimits, log: Logger): void {
  const ranges = rangesOf(trusted);
  const strangers = new StrangerLog((level, message, fields) => log[level](fields, message));
  const isExempt = (address: string) => address === "127.0.0.1" || address === "::1" || isInRanges(address, ranges);
  /** By the addresses and ports of both sides, in the order of their start. */
  const entries = new Map<string, Entry>();
  const perNetwork = new Map<string, number>();
  const countOf = (network: string) => perNetwork.get(network) ?? 0;
  const isSecure = "setSecureContext" in server;

  const remove = (key: string, entry: Entry) => {
    if (entries.get(key) !== entry) return;
    entries.delete(key);
    const rest = countOf(entry.network) - 1;
    if (rest > 0) perNetwork.set(entry.network, rest);
    else perNetwork.delete(entry.network);
  };
  const closeOne = () => {
    let chosen: [string, Entry] | null = null;
    let looked = 0;
    const isBusy = ({ http }: Entry) => Boolean(http?._httpMessage);
    for (const [key, entry] of entries) {
      if (looked++ === LOOKED_AT) break;
      const more = chosen === null ? 1 : countOf(entry.network) - countOf(chosen[1].network);
      const isIdler = chosen !== null && isBusy(chosen[1]) && !isBusy(entry);
      if (chosen === null || isIdler || (more > 0 && isBusy(entry) === isBusy(chosen[1]))) chosen = [key, entry];
    }
    if (chosen === null) return;
    remove(...chosen);
    chosen[1].raw.destroy();
  };

  /** Whether the connection may stay. */
  const admit = (raw: Socket): boolean => {
    const { remoteAddress } = raw;
    if (remoteAddress === undefined) return false;
    const address = plainAddress(remoteAddress);
    if (isExempt(address)) return true;
    const network = networkOf(address);
    if (countOf(network) >= perAddress) {
      const message =
        "Too many connections from one address. If it is a proxy, add it to VODBOX_TRUSTED_PROXIES; else raise VODBOX_CONNECTIONS_PER_ADDRESS.";
      strangers.write("warn", message, { address, connections: perAddress });
      if (!isSecure) raw.end(RESPONSE);
      return false;
    }
    if (entries.size >= inAll) closeOne();
    const key = keyOf(raw);
    // A client that resets and comes back from the same port is here before the end of its first connection.
    const before = entries.get(key);
    if (before) remove(key, before);
    const entry: Entry = { raw, network, http: isSecure ? null : raw };
    entries.set(key, entry);
    perNetwork.set(network, countOf(network) + 1);
    raw.once("close", () => remove(key, entry));
    return true;
  };

  // Node's own listeners must not see a connection that is refused: they would read from it.
  const listeners = server.listeners("connection");
  server.removeAllListeners("connection");
  server.on("connection", (raw: Socket) => {
    if (admit(raw)) {
      for (const listener of listeners) listener.call(server, raw);
      return;
    }
    raw.on("error", () => {});
    raw.destroySoon();
  });
  if (isSecure)
    server.on("secureConnection", (socket: Socket) => {
      const entry = entries.get(keyOf(socket));
      if (entry) entry.http = socket;
    });
}

/** A quarter of the file descriptors is for files, the database and connections to others. */
const SHARE_OF_FILES = 0.75;

/** How many connections this process may have open, by its limit of file descriptors (proc(5)). */
export function connectionsInAll(): number {
  try {
    const files = /^Max open files\s+(\d+)/m.exec(readFileSync("/proc/self/limits", "utf8"))?.[1];
    return files === undefined ? Number.POSITIVE_INFINITY : Math.floor(Number(files) * SHARE_OF_FILES);
  } catch {
    return Number.POSITIVE_INFINITY;
  }
}
