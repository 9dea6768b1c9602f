import { isIP } from "node:net";
import { type NetworkInterfaceInfo, networkInterfaces } from "node:os";

const ANY = new Set(["0.0.0.0", "::"]);
/** Link-local addresses (RFC 4291, 2.5.6) need a zone, which a candidate cannot have. */
const isLinkLocal = (address: string) => /^fe[89ab]/i.test(address);

/**
 * The addresses at which publishers reach this server: `configured`, else that where it listens, else all of this machine, or the
 * loopback ones when there are no others.
 */
export function announcedAddresses(
  host: string,
  configured: readonly string[],
  interfaces: NodeJS.Dict<NetworkInterfaceInfo[]> = networkInterfaces(),
): string[] {
  if (configured.length > 0) return [...configured];
  if (isIP(host) !== 0 && !ANY.has(host)) return [host];
  const all = Object.values(interfaces)
    .flatMap((own) => own ?? [])
    .filter(({ address, family }) => !isLinkLocal(address) && (host === "::" || family === "IPv4"));
  const outside = all.filter(({ internal }) => !internal);
  return (outside.length > 0 ? outside : all).map(({ address }) => address);
}
