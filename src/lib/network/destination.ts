import { isIP, type LookupFunction } from "node:net";
import { isInRanges, isPublic, type Ranges } from "./guard.ts";
import { BlockedDestination, OutboundFailure } from "./http-client.ts";
import type { Resolve } from "./resolve.ts";

/** The rules for destinations that tenants choose, whatever the protocol. `hostname` is that of a parsed URL. */

/** The address of a numeric host; null for a name. The URL parser has normalized all spellings of an IPv4 address. */
export function literalOf(hostname: string): string | null {
  const host = hostname.replace(/^\[(.*)\]$/, "$1").replace(/\.$/, "");
  return isIP(host) === 0 ? null : host;
}

/**
 * Throws BlockedDestination for an address that is neither public nor in `ranges`. One among others is enough for a
 * refusal, because the name's owner must not choose which one is used.
 */
export function requireAllowed(addresses: readonly string[], hostname: string, ranges: Ranges): void {
  for (const address of addresses) {
    if (isInRanges(address, ranges) || isPublic(address)) continue;
    // Tenants read this message: the resolved address may belong to the operator's own network.
    if (literalOf(hostname) === null)
      throw new BlockedDestination(`${hostname} does not resolve to a public IP address; use a public host.`);
    throw new BlockedDestination(`${address} is not a public IP address; use a public one.`);
  }
}

/**
 * All addresses of a host. A connection must go to one of them, without resolving the name again. Throws
 * BlockedDestination as `requireAllowed` does, and OutboundFailure when the name has no address or `signal` aborts.
 */
export async function vettedAddresses(
  hostname: string,
  { ranges, resolve, signal }: { ranges: Ranges; resolve: Resolve; signal: AbortSignal },
): Promise<string[]> {
  const addresses = await addressesOf(hostname, resolve, signal);
  requireAllowed(addresses, hostname, ranges);
  return addresses;
}

async function addressesOf(hostname: string, resolve: Resolve, signal: AbortSignal): Promise<string[]> {
  const literal = literalOf(hostname);
  if (literal !== null) return [literal];
  let addresses: string[] = [];
  try {
    addresses = await resolve(hostname.replace(/\.$/, ""), signal);
  } catch {
    if (!signal.aborted) throw new OutboundFailure("dns", "The host name cannot be resolved.");
  }
  if (signal.aborted) throw new OutboundFailure("timeout", "The request timed out.");
  if (addresses.length === 0) throw new OutboundFailure("dns", `${hostname} has no IP address.`);
  return addresses;
}

/** Replaces name resolution by the system: the connection gets only checked addresses. */
export function lookupOf(addresses: readonly string[]): LookupFunction {
  const all = addresses.map((address) => ({ address, family: isIP(address) }));
  return (_hostname, options, callback) => {
    const matching =
      options.family === 4 || options.family === 6 ? all.filter((a) => a.family === options.family) : all;
    const [first = all[0]] = matching;
    if (options.all) (callback as unknown as (error: null, all: object[]) => void)(null, matching);
    else callback(null, first?.address ?? "", first?.family);
  };
}

/** What the error of a connection means, for the tenant that chose its destination. */
export function connectionFailure({ code = "" }: NodeJS.ErrnoException): OutboundFailure {
  if (/^(ERR_TLS|ERR_SSL|CERT_|DEPTH_|SELF_|UNABLE_TO|EPROTO|HOSTNAME_)/.test(code))
    return new OutboundFailure("tls", `The TLS connection failed (${code}).`);
  return new OutboundFailure("connection", `The connection failed${code === "" ? "" : ` (${code})`}.`);
}
