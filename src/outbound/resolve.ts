import { Resolver } from "node:dns/promises";
import { readFile } from "node:fs/promises";
import { isIP } from "node:net";

/** Numeric addresses of a name, all of them. */
export type Resolve = (hostname: string, signal: AbortSignal) => Promise<string[]>;

const TRY_MS = 2000;
const TRIES = 2;
/** No name has so many by design; the rest could not be tried anyway. */
const MAX_ADDRESSES = 64;

/**
 * Asks name servers directly (c-ares). `dns.lookup` would hold one of the few threads that files are read with for as
 * long as a stranger's name server likes. Names that are only in /etc/hosts are found too.
 */
export function resolverOf(servers?: readonly string[]): Resolve {
  return async (hostname, signal) => {
    const resolver = new Resolver({ timeout: TRY_MS, tries: TRIES });
    if (servers) resolver.setServers([...servers]);
    const stop = () => resolver.cancel();
    signal.addEventListener("abort", stop, { once: true });
    try {
      // RFC 6761: localhost is this machine, and nobody is to be asked.
      if (hostname === "localhost" || hostname.endsWith(".localhost")) return ["127.0.0.1"];
      const [v4, v6] = await Promise.allSettled([resolver.resolve4(hostname), resolver.resolve6(hostname)]);
      const found = [v4, v6].flatMap((answer) => (answer.status === "fulfilled" ? answer.value : []));
      if (found.length > 0) return found.slice(0, MAX_ADDRESSES);
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
