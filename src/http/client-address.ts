import { isIP } from "node:net";
import ipaddr from "ipaddr.js";
import { isInRanges, rangesOf } from "../outbound/guard.ts";

/** Nobody has so many proxies in a row. */
const MAX_HOPS = 100;

/**
 * Whose request it is. Proxies in `trusted` (CIDR ranges) are believed about who came to them: the last address of
 * X-Forwarded-For or Forwarded (RFC 7239), from the right, that is no trusted proxy. What stands left of that its sender
 * may have made up; what is no address ends the walk at the proxy that told it. Where both headers are sent and differ,
 * the client wrote one of them, and neither is believed.
 */
export function clientAddresses(trusted: readonly string[]): (peer: string, headers: Headers) => string {
  const ranges = rangesOf(trusted);
  const isTrusted = (address: string) => isInRanges(address, ranges);
  return (peer, headers) => {
    const socket = plain(peer);
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
    const told = headers.get("forwarded");
    if (listed === null && told === null) return socket;
    if (told === null) return walk((listed as string).split(","));
    const byTold = walk(forwardedFor(told));
    return listed === null || walk(listed.split(",")) === byTold ? byTold : socket;
  };
}

/** What a limit counts: an IPv4 address; of IPv6 the /64, all of which one subscriber has (RFC 6177). */
export function networkOf(address: string): string {
  const told = plain(address);
  // Else all of IPv4 in IPv6's clothes would be one network.
  if (isIP(told) !== 6) return told;
  const parts = ipaddr.IPv6.parse(told).parts.slice(0, 4);
  return `${parts.map((part) => part.toString(16)).join(":")}::/64`;
}

/** IPv4 in IPv6's clothes (RFC 4291, 2.5.5.2) is IPv4, and one address has one spelling. */
function plain(address: string): string {
  return isIP(address) === 6 ? ipaddr.process(address.replace(/%.*/, "")).toString() : address;
}

/** The address of `192.0.2.1`, `192.0.2.1:80`, `2001:db8::1` or `[2001:db8::1]:80`; null for anything else. */
function hostOf(hop: string): string | null {
  const text = hop.trim();
  const host =
    /^\[([^\]]*)\](?::\d{1,5})?$/.exec(text)?.[1] ?? /^(\d+\.\d+\.\d+\.\d+)(?::\d{1,5})?$/.exec(text)?.[1] ?? text;
  const isBracketed = text.startsWith("[");
  return isIP(host) === 0 || host.includes("%") || (isBracketed && isIP(host) !== 6) ? null : plain(host);
}

const FIELD = /\s*([!#$%&'*+.^_`|~\w-]+)=(?:"((?:[^"\\]|\\.)*)"|([^\s";,]*))\s*(;|,|$)/y;

/** The `for` of each element (RFC 7239, 4), in order; an empty one where an element has none. What cannot be read, and all left of it, is one. */
function forwardedFor(header: string): string[] {
  const hops: string[] = [];
  let current = "";
  FIELD.lastIndex = 0;
  while (FIELD.lastIndex < header.length) {
    const match = FIELD.exec(header);
    // From the right what stands after a broken one may be made up as well.
    if (!match) return ["?"];
    const [, name = "", quoted, token = "", end] = match;
    if (name.toLowerCase() === "for") current = quoted?.replaceAll(/\\(.)/g, "$1") ?? token;
    if (end === ";") continue;
    hops.push(current);
    current = "";
  }
  return hops;
}
