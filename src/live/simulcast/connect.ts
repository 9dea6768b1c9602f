import { connect as connectTcp, type Socket } from "node:net";
import { connect as connectTls } from "node:tls";
import { connectionFailure, literalOf, lookupOf, rangesOf, resolverOf, vettedAddresses } from "#lib/network";
import type { PublishUrl } from "#lib/rtmp";

/** Opens a connection. Rejects with an error whose message is for the tenant, also when `signal` aborts. */
export type Connect = (url: PublishUrl, signal: AbortSignal) => Promise<Socket>;

/**
 * Connects by the rules for webhooks: the name is resolved for each connection, every address of it is checked, and the
 * connection goes to one of these. `allowCidrs`: ranges that are allowed although they are not public.
 */
export function connector(allowCidrs: readonly string[]): Connect {
  const ranges = rangesOf(allowCidrs);
  const resolve = resolverOf();
  return async ({ isTls, hostname, port }, signal) => {
    const addresses = await vettedAddresses(hostname, { ranges, resolve, signal });
    const host = literalOf(hostname) ?? hostname;
    const to = { host, port, lookup: lookupOf(addresses) };
    // A server name is not allowed for a numeric host (RFC 6066, 3).
    const servername = literalOf(hostname) === null ? hostname : "";
    const socket = isTls ? connectTls({ ...to, servername }) : connectTcp(to);
    const { promise, resolve: connected, reject } = Promise.withResolvers<Socket>();
    const abort = () => socket.destroy(new Error("The connection timed out."));
    signal.addEventListener("abort", abort, { once: true });
    const failed = (error: NodeJS.ErrnoException) => reject(signal.aborted ? error : connectionFailure(error));
    socket.once("error", failed);
    socket.once(isTls ? "secureConnect" : "connect", () => {
      socket.off("error", failed);
      signal.removeEventListener("abort", abort);
      socket.setNoDelay(true);
      connected(socket);
    });
    if (signal.aborted) abort();
    return promise;
  };
}
