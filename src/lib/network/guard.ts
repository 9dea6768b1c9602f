import ipaddr from "ipaddr.js";

/** Public IP addresses that only answer to machines of their cloud: Azure's wire server. */
const PUBLIC_METADATA = new Set(["168.63.129.16"]);
const GLOBAL_UNICAST = ipaddr.IPv6.parseCIDR("2000::/3") as [ipaddr.IPv6, number];

/** Ranges that an operator allows, `10.0.0.0/8` or a single address. Throws for anything else. */
export type Ranges = readonly [ipaddr.IPv4 | ipaddr.IPv6, number][];
export const rangesOf = (cidrs: readonly string[]): Ranges =>
  cidrs.map((cidr) => {
    const [address = "", bits] = cidr.split("/");
    const parsed = ipaddr.parse(address);
    return [parsed, bits === undefined ? (parsed.kind() === "ipv4" ? 32 : 128) : Number(bits)];
  });

/**
 * Whether a numeric address is in one of the ranges; an IPv4-mapped address counts as IPv4.
 * @example
 * isInRanges("10.1.2.3", rangesOf(["10.0.0.0/8"])) // => true
 */
export function isInRanges(address: string, ranges: Ranges): boolean {
  if (!ipaddr.isValid(address)) return false;
  const parsed = ipaddr.process(address);
  return ranges.some(([base, bits]) => base.kind() === parsed.kind() && parsed.match([base, bits] as never));
}

/**
 * Whether a numeric address is globally reachable unicast (IANA's special-purpose registries, RFC 6890), to which
 * requests may be sent. An address that embeds another one (NAT64, 6to4, Teredo, IPv4-mapped) is refused, or judged by
 * the embedded one.
 */
export function isPublic(address: string): boolean {
  if (!ipaddr.isValid(address)) return false;
  const parsed = ipaddr.process(address);
  if (parsed.range() !== "unicast" || PUBLIC_METADATA.has(parsed.toString())) return false;
  return parsed.kind() === "ipv4" || (parsed as ipaddr.IPv6).match(GLOBAL_UNICAST);
}
