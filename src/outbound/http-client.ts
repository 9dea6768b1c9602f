import type { IncomingMessage } from "node:http";

/** The destination is none that a tenant may send us to. Never worth another try. */
export class BlockedDestination extends Error {}

/** Nothing came back, or nothing that is HTTP. Worth another try. */
export class OutboundFailure extends Error {
  readonly code: "timeout" | "connection" | "dns" | "tls" | "protocol";
  constructor(code: OutboundFailure["code"], message: string) {
    super(message);
    this.code = code;
  }
}

/** The one way out to addresses that tenants give. Kept connections and name servers belong to it. */
export type HttpClient = {
  /** Throws BlockedDestination for an address that could never be reached; names are looked up when it is sent to. */
  check(url: string): URL;
  send(url: string, request: OutboundRequest): Promise<IncomingMessage>;
  close(): void;
};

export type OutboundRequest = {
  method: "GET" | "POST";
  headers: Record<string, string>;
  body?: string | Uint8Array;
  /** Ends the request, and the reading of the answer. */
  signal: AbortSignal;
  /** Whose connections are kept and used again for this request: those of the same pool, and of no other. */
  pool?: string | undefined;
};
