import { Resolver } from "node:dns/promises";
import { readFile } from "node:fs/promises";
import { isIP } from "node:net";

/** All numeric addresses of a name. */
export type Resolve = (hostname: string, signal: AbortSignal) => Promise<string[]>;

const TRY_MS = 2000;
const TRIES = 2;
/** More addresses than any real name has; the rest could not be tried anyway. */
const MAX_ADDRESSES = 64;

/**
 * Queries name servers directly (c-ares). `dns.lookup` would block a thread of the pool that also reads files, for as
 * long as an untrusted name server chooses. Names in /etc/hosts are found too.
 */
export function resolverOf(servers?: readonly string[]): Resolve {
  return async (hostname, signal) => {
    const resolver = new Resolver({ timeout: TRY_MS, tries: TRIES });
    if (servers) resolver.setServers([...servers]);
    const stop = () => resolver.cancel();
    signal.addEventListener("abort", stop, { once: true });
    try {
      // RFC 6761: localhost is this machine; no server is queried.
      if (hostname === "localhost" || hostname.endsWith(".localhost")) return ["127.0.0.1"];
      const [v4, v6] = await Promise.allSettled([resolver.resolve4(hostname), resolver.resolve6(hostname)]);
      const addresses = [v4, v6].flatMap((answer) => (answer.status === "fulfilled" ? answer.value : []));
      if (addresses.length > 0) return addresses.slice(0, MAX_ADDRESSES);
      return await inHostsFile(hostname);
    } finally {
      signal.removeEventListener("abort", stop);
    }
  };
}

async function inHostsFile(hostname: string): Promise<string[]> {
  const text = await readFile("/etc/hosts", "utf8").catch(() => "");
  return text
    .split("\n")
    .map((line) => line.replace(/#.*/, "").trim().split(/\s+/))
    .filter(([address = "", ...names]) => isIP(address) !== 0 && names.includes(hostname))
    .map(([address]) => address as string);
}
