import type { RequestOptions } from "node:https";
import { isIP, type LookupFunction } from "node:net";
import { isInRanges, isPublic, type Ranges, rangesOf } from "./guard.ts";
import { BlockedDestination, type HttpClient, OutboundFailure } from "./http-client.ts";
import { type Resolve, resolverOf } from "./resolve.ts";
import type { Transports } from "./transport.ts";

export type SafeHttpClientOptions = {
  allowCidrs?: readonly string[];
  dnsServers?: readonly string[];
  keepAliveMs?: number;
};

const KEEP_ALIVE_MS = 10_000;

/**
 * Every request is resolved anew, every address of the name is judged, and the connection is made to one that was: what
 * is vetted is what is dialled, whatever the name server says a moment later. A kept connection is used again only when
 * the name still leads to the same addresses. Redirects are answers, and are not followed.
 */
export function createSafeHttpClient({
  allowCidrs = [],
  dnsServers,
  keepAliveMs = KEEP_ALIVE_MS,
}: SafeHttpClientOptions = {}): HttpClient {
  const ranges = rangesOf(allowCidrs);
  const resolve = resolverOf(dnsServers);
  // TLS takes as long to load as a third of a start, and many a server never sends anything.
  let loading: Promise<Transports> | undefined;
  const ways = () => {
    loading ??= import("./transport.ts").then(({ createTransports }) => createTransports({ keepAliveMs }));
    return loading;
  };
  return {
    check: (url) => parse(url, ranges),
    async send(address, { method, headers, body, signal, pool }) {
      const url = parse(address, ranges);
      const addresses = await vet(url, ranges, resolve, signal);
      const way = (await ways())[url.protocol as "http:" | "https:"];
      const options: RequestOptions & { vetted: string; pool: string } = {
        method,
        headers: { ...headers, ...(body !== undefined && { "content-length": Buffer.byteLength(body) }) },
        signal,
        agent: way.agent,
        lookup: lookupOf(addresses),
        vetted: addresses.toSorted().join(),
        pool: pool ?? "",
      };
      return new Promise((settle, fail) => {
        const request = way.request(url, options, settle);
        request.on("error", (error: NodeJS.ErrnoException) => {
          // The other side closed a kept connection just as it was taken: nothing was sent on it that counts.
          if (request.reusedSocket && error.code === "ECONNRESET" && !signal.aborted) {
            const again = way.request(url, { ...options, agent: false }, settle);
            again.on("error", (last) => fail(failureOf(last, signal)));
            again.end(body);
          } else fail(failureOf(error, signal));
        });
        request.end(body);
      });
    },
    close() {
      loading?.then((opened) => {
        for (const { agent } of Object.values(opened)) agent.destroy();
      });
    },
  };
}

function parse(address: string, ranges: Ranges): URL {
  const url = URL.canParse(address) ? new URL(address) : null;
  if (!url || (url.protocol !== "https:" && url.protocol !== "http:"))
    throw new BlockedDestination("The address is not an https address.");
  if (url.username !== "" || url.password !== "")
    throw new BlockedDestination("The address holds a user name or a password.");
  const literal = literalOf(url);
  if (literal !== null) judge([literal], url, ranges);
  else if (url.protocol === "http:" && ranges.length === 0) throw new BlockedDestination(PLAIN);
  return url;
}

const PLAIN = "Plain http is only for addresses inside the ranges that the operator has opened; use https.";

/** The URL parser has made one spelling of all the ways to write an IPv4 address. */
function literalOf(url: URL): string | null {
  const host = url.hostname.replace(/^\[(.*)\]$/, "$1").replace(/\.$/, "");
  return isIP(host) === 0 ? null : host;
}

async function vet(url: URL, ranges: Ranges, resolve: Resolve, signal: AbortSignal): Promise<string[]> {
  const literal = literalOf(url);
  if (literal !== null) return [literal];
  let addresses: string[];
  try {
    addresses = await resolve(url.hostname.replace(/\.$/, ""), signal);
  } catch (error) {
    throw signal.aborted
      ? failureOf(error as Error, signal)
      : new OutboundFailure("dns", "The name cannot be resolved.");
  }
  if (signal.aborted) throw failureOf(new Error(), signal);
  if (addresses.length === 0) throw new OutboundFailure("dns", `There is no address for ${url.hostname}.`);
  judge(addresses, url, ranges);
  return addresses;
}

/** One private address among public ones is enough: which of them is dialled is not for the name's owner to choose. */
function judge(addresses: readonly string[], url: URL, ranges: Ranges): void {
  for (const address of addresses) {
    if (isInRanges(address, ranges)) continue;
    if (!isPublic(address)) {
      // Tenants read this: what a name resolves to here may be an address of the operator's own network.
      if (literalOf(url) === null)
        throw new BlockedDestination(`${url.hostname} is not at a public address; use a host that is.`);
      throw new BlockedDestination(`${address} is not a public address; use one that is.`);
    }
    if (url.protocol === "http:") throw new BlockedDestination(PLAIN);
  }
}

/** What the connection asks instead of the system: it gets what was vetted, and nothing else. */
function lookupOf(addresses: readonly string[]): LookupFunction {
  const all = addresses.map((address) => ({ address, family: isIP(address) }));
  return (_hostname, options, callback) => {
    const wanted = options.family === 4 || options.family === 6 ? all.filter((a) => a.family === options.family) : all;
    const [first = all[0]] = wanted;
    if (options.all) (callback as unknown as (error: null, all: object[]) => void)(null, wanted);
    else callback(null, first?.address ?? "", first?.family);
  };
}

function failureOf(error: NodeJS.ErrnoException, signal: AbortSignal): OutboundFailure {
  if (signal.aborted) return new OutboundFailure("timeout", "No answer came in time.");
  const code = error.code ?? "";
  if (code.startsWith("HPE_")) return new OutboundFailure("protocol", "The answer was not HTTP.");
  if (/^(ERR_TLS|ERR_SSL|CERT_|DEPTH_|SELF_|UNABLE_TO|EPROTO|HOSTNAME_)/.test(code))
    return new OutboundFailure("tls", `The connection could not be secured (${code}).`);
  return new OutboundFailure("connection", `The connection failed${code === "" ? "" : ` (${code})`}.`);
}
