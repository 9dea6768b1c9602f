import ipaddr from "ipaddr.js";

/** Addresses on the public internet that answer only to machines of their cloud: Azure's wire server. */
const PUBLIC_METADATA = new Set(["168.63.129.16"]);
const GLOBAL_UNICAST = ipaddr.IPv6.parseCIDR("2000::/3") as [ipaddr.IPv6, number];

/** Ranges that an operator opens, `10.0.0.0/8` or a single address. Throws on what is neither. */
export type Ranges = readonly [ipaddr.IPv4 | ipaddr.IPv6, number][];
export const rangesOf = (cidrs: readonly string[]): Ranges =>
  cidrs.map((cidr) => {
    const [address = "", bits] = cidr.split("/");
    const parsed = ipaddr.parse(address);
    return [parsed, bits === undefined ? (parsed.kind() === "ipv4" ? 32 : 128) : Number(bits)];
  });

/** Whether a numeric address lies in one of the ranges; an IPv4-mapped one counts as the IPv4 that it stands for. */
export function isInRanges(address: string, ranges: Ranges): boolean {
  if (!ipaddr.isValid(address)) return false;
  const parsed = ipaddr.process(address);
  return ranges.some(([base, bits]) => base.kind() === parsed.kind() && parsed.match([base, bits] as never));
}

/**
 * Whether a numeric address is one that anybody's request may go to: globally reachable unicast (IANA's special-purpose
 * registries, RFC 6890). What carries another address inside it (NAT64, 6to4, Teredo, IPv4-mapped) is not, or is judged by
 * the one inside.
 */
export function isPublic(address: string): boolean {
  if (!ipaddr.isValid(address)) return false;
  const parsed = ipaddr.process(address);
  if (parsed.range() !== "unicast" || PUBLIC_METADATA.has(parsed.toString())) return false;
  return parsed.kind() === "ipv4" || (parsed as ipaddr.IPv6).match(GLOBAL_UNICAST);
}
