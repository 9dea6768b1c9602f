import { isIP } from "node:net";
import ipaddr from "ipaddr.js";

/**
 * The unit of a limit for each client: an IPv4 address, or the /64 of an IPv6 address, which belongs to one subscriber
 * (RFC 6177). A text that is not an address is returned as it is.
 * @example
 * networkOf("192.0.2.7") // => "192.0.2.7"
 * networkOf("2001:db8:1:2:3:4:5:6") === networkOf("2001:db8:1:2::9") // => true
 */
export function networkOf(address: string): string {
  const numeric = plainAddress(address);
  // Otherwise all IPv4-mapped addresses would share one network.
  if (isIP(numeric) !== 6) return numeric;
  const parts = ipaddr.IPv6.parse(numeric).parts.slice(0, 4);
  return `${parts.map((part) => part.toString(16)).join(":")}::/64`;
}

/**
 * An address without the part that identifies a subscriber: the /24 of an IPv4 address, the /48 of an IPv6 one. Null for a text that is
 * no address.
 * @example
 * truncatedAddress("::ffff:192.0.2.7") // => "192.0.2.0/24"
 * truncatedAddress("2001:db8:1:2::3") // => "2001:db8:1::/48"
 */
export function truncatedAddress(address: string): string | null {
  const plain = plainAddress(address);
  const kind = isIP(plain);
  if (kind === 4) return `${plain.split(".").slice(0, 3).join(".")}.0/24`;
  if (kind !== 6) return null;
  const parts = ipaddr.IPv6.parse(plain).parts.map((part, index) => (index < 3 ? part : 0));
  return `${new ipaddr.IPv6(parts).toString()}/48`;
}

/**
 * Without its zone; an IPv4-mapped IPv6 address (RFC 4291, 2.5.5.2) as IPv4, so that each address has one spelling.
 * @example
 * plainAddress("::ffff:192.0.2.7") // => "192.0.2.7"
 */
export function plainAddress(address: string): string {
  return isIP(address) === 6 ? ipaddr.process(address.replace(/%.*/, "")).toString() : address;
}
