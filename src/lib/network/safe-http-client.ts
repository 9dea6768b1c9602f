import type { RequestOptions } from "node:https";
import { connectionFailure, literalOf, lookupOf, requireAllowed, vettedAddresses } from "./destination.ts";
import { isInRanges, type Ranges, rangesOf } from "./guard.ts";
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
 * Each request is resolved again, every address of the name is checked, and the connection goes to one of the checked
 * addresses, whatever the name server returns a moment later. A connection is reused only while the name still has the
 * same addresses. Redirects are not followed; they are the response.
 */
export function createSafeHttpClient({
  allowCidrs = [],
  dnsServers,
  keepAliveMs = KEEP_ALIVE_MS,
}: SafeHttpClientOptions = {}): HttpClient {
  const ranges = rangesOf(allowCidrs);
  const resolve = resolverOf(dnsServers);
  // TLS takes a third of the start time to load, and many servers never send a request.
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
          // The peer closed a reused connection just as it was chosen: nothing was processed.
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
    throw new BlockedDestination("The URL is not an https URL.");
  if (url.username !== "" || url.password !== "")
    throw new BlockedDestination("The URL contains a user name or password.");
  const literal = literalOf(url.hostname);
  if (literal !== null) {
    requireAllowed([literal], url.hostname, ranges);
    requireTls([literal], url, ranges);
  } else if (url.protocol === "http:" && ranges.length === 0) throw new BlockedDestination(PLAIN);
  return url;
}

const PLAIN = "Plain http is only allowed for hosts in the ranges of VODBOX_WEBHOOK_ALLOW_CIDRS; use https.";

async function vet(url: URL, ranges: Ranges, resolve: Resolve, signal: AbortSignal): Promise<string[]> {
  const addresses = await vettedAddresses(url.hostname, { ranges, resolve, signal });
  requireTls(addresses, url, ranges);
  return addresses;
}

function requireTls(addresses: readonly string[], url: URL, ranges: Ranges): void {
  if (url.protocol === "http:" && !addresses.every((address) => isInRanges(address, ranges)))
    throw new BlockedDestination(PLAIN);
}

function failureOf(error: NodeJS.ErrnoException, signal: AbortSignal): OutboundFailure {
  if (signal.aborted) return new OutboundFailure("timeout", "The request timed out.");
  if (error.code?.startsWith("HPE_")) return new OutboundFailure("protocol", "The response was not valid HTTP.");
  return connectionFailure(error);
}
