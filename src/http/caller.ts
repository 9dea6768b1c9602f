import { type Column, eq, type SQL } from "drizzle-orm";
import { notFound } from "../lib/errors.ts";

export const SCOPES = [
  "assets:read",
  "assets:write",
  "playback:read",
  "billing:write",
  "api_keys:read",
  "api_keys:write",
  "webhooks:read",
  "webhooks:write",
] as const;
export type Scope = (typeof SCOPES)[number];

/** Who asks. Every query that loads a row takes one. */
export type Caller =
  | { kind: "key"; keyId: number; tenantId: number; scopes: readonly string[] }
  | { kind: "admin" }
  /** Holds the lease of one ingest batch, and so may do all with it, and nothing else. */
  | { kind: "batch"; batchId: number; tenantId: number }
  | { kind: "worker" }
  /** The live gateway: it owns nothing. */
  | { kind: "gateway" }
  | { kind: "anyone" };

/** The condition that keeps a caller to its own rows; none for the admin token. Nobody else owns anything. */
export function ownedBy(caller: Caller, tenantId: Column): SQL | undefined {
  if (caller.kind === "admin") return undefined;
  return eq(tenantId, caller.kind === "key" ? caller.tenantId : -1);
}

/**
 * The tenant that a request is for: a key's own, which it may name or leave out; with the admin token the named one,
 * which it must give. Naming another's answers as naming none that exists.
 */
export function tenantFor(caller: Caller, named: number | undefined): number | undefined {
  if (caller.kind === "admin") return named;
  if (caller.kind !== "key" || (named !== undefined && named !== caller.tenantId)) return notFound("tenant");
  return caller.tenantId;
}
