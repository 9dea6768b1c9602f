import { isIP } from "node:net";
import { isInRanges, plainAddress, rangesOf } from "#lib/network";

/** More proxies than any real chain has. */
const MAX_HOPS = 100;

/**
 * The client's address. Proxies in `trusted` (CIDR ranges) are believed about their peer: from the right, the last
 * address of X-Forwarded-For or Forwarded (RFC 7239) that is not a trusted proxy. Entries to the left of it may be
 * forged. An entry that is not an address ends the walk at the proxy that sent it. When both headers are present and
 * differ, the client wrote one of them, and neither is used.
 */
export function clientAddresses(trusted: readonly string[]): (peer: string, headers: Headers) => string {
  const ranges = rangesOf(trusted);
  const isTrusted = (address: string) => isInRanges(address, ranges);
  return (peer, headers) => {
    const socket = plainAddress(peer);
    if (ranges.length === 0 || !isTrusted(socket)) return socket;
    const walk = (hops: string[]) => {
      let at = socket;
      for (const hop of hops.reverse().slice(0, MAX_HOPS)) {
        const before = hostOf(hop);
        if (before === null) return at;
        at = before;
        if (!isTrusted(at)) return at;
      }
      return at;
    };
    const listed = headers.get("x-forwarded-for");
    const forwarded = headers.get("forwarded");
    if (listed === null && forwarded === null) return socket;
    if (forwarded === null) return walk((listed as string).split(","));
    const fromForwarded = walk(forwardedFor(forwarded));
    return listed === null || walk(listed.split(",")) === fromForwarded ? fromForwarded : socket;
  };
}

/** Whether the peer of a connection is in `trusted` (CIDR ranges): then it is believed about the client. */
export function trustedProxies(trusted: readonly string[]): (peer: string) => boolean {
  const ranges = rangesOf(trusted);
  return (peer) => ranges.length > 0 && isInRanges(plainAddress(peer), ranges);
}

/** The address in `192.0.2.1`, `192.0.2.1:80`, `2001:db8::1` or `[2001:db8::1]:80`; null for anything else. */
function hostOf(hop: string): string | null {
  const text = hop.trim();
  const host =
    /^\[([^\]]*)\](?::\d{1,5})?$/.exec(text)?.[1] ?? /^(\d+\.\d+\.\d+\.\d+)(?::\d{1,5})?$/.exec(text)?.[1] ?? text;
  const isBracketed = text.startsWith("[");
  return isIP(host) === 0 || host.includes("%") || (isBracketed && isIP(host) !== 6) ? null : plainAddress(host);
}

const FIELD = /\s*([!#$%&'*+.^_`|~\w-]+)=(?:"((?:[^"\\]|\\.)*)"|([^\s";,]*))\s*(;|,|$)/y;

/**
 * The `for` parameter of each element (RFC 7239, 4), in order; empty when an element has none. An unreadable element,
 * and all to its left, become one empty entry.
 */
function forwardedFor(header: string): string[] {
  const hops: string[] = [];
  let current = "";
  FIELD.lastIndex = 0;
  while (FIELD.lastIndex < header.length) {
    const match = FIELD.exec(header);
    // Read from the right: elements to the left of a malformed one may be forged too.
    if (!match) return ["?"];
    const [, name = "", quoted, token = "", end] = match;
    if (name.toLowerCase() === "for") current = quoted?.replaceAll(/\\(.)/g, "$1") ?? token;
    if (end === ";") continue;
    hops.push(current);
    current = "";
  }
  return hops;
}
