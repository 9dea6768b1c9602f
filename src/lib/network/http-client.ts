import type { IncomingMessage } from "node:http";

/** A destination to which tenants' requests must not be sent. Never worth a retry. */
export class BlockedDestination extends Error {}

/** No response, or not HTTP. Worth a retry. */
export class OutboundFailure extends Error {
  readonly code: "timeout" | "connection" | "dns" | "tls" | "protocol";
  constructor(code: OutboundFailure["code"], message: string) {
    super(message);
    this.code = code;
  }
}

/** The client for URLs that tenants provide. It owns its connections and name servers. */
export type HttpClient = {
  /** Throws BlockedDestination for an address that is never allowed; names are resolved when a request is sent. */
  check(url: string): URL;
  send(url: string, request: OutboundRequest): Promise<IncomingMessage>;
  close(): void;
};

export type OutboundRequest = {
  method: "GET" | "POST";
  headers: Record<string, string>;
  body?: string | Uint8Array;
  /** Aborts the request, and the reading of the response. */
  signal: AbortSignal;
  /** Connections are reused only by requests with the same pool. */
  pool?: string | undefined;
};
