export { networkOf, plainAddress, truncatedAddress } from "./addresses.ts";
export { describeConnectionError, isCertificateError } from "./connection-errors.ts";
export { connectionFailure, literalOf, lookupOf, requireAllowed, vettedAddresses } from "./destination.ts";
export { isInRanges, rangesOf } from "./guard.ts";
export { BlockedDestination, type HttpClient, OutboundFailure } from "./http-client.ts";
export { post } from "./post.ts";
export { resolverOf } from "./resolve.ts";
export { createSafeHttpClient } from "./safe-http-client.ts";
