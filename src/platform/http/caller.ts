import { type Column, eq, type SQL } from "drizzle-orm";
import { notFound } from "#lib/base";
import type { Role } from "#model/enums.ts";

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

/** A browser session, authenticated by its cookie. */
export type Session = { id: number; csrfToken: string; expiresAt: number };

/** Software or a person of one tenant. `keyId` is null for a user who signed in with a password. */
export type TenantCaller = {
  kind: "key";
  keyId: number | null;
  userId?: number;
  tenantId: number;
  scopes: readonly string[];
  session?: Session;
  /** The role of the user who signed in, or who redeemed the device token. */
  role?: Role;
};

/** The authenticated caller. Every query that loads a row takes one. */
export type Caller =
  | TenantCaller
  | { kind: "admin"; session?: Session }
  /** The holder of a batch upload's lease: has full access to that batch, and to nothing else. */
  | { kind: "batch"; batchId: number; tenantId: number }
  | { kind: "worker" }
  /** The live gateway; it owns no resources. */
  | { kind: "gateway" }
  /** A monitoring system; it owns no resources. */
  | { kind: "metrics" }
  | { kind: "anyone" };

/** The tenant whose rows a caller may access; undefined for the admin token, which may access all; -1 for none. */
export function ownerOf(caller: Caller): number | undefined {
  if (caller.kind === "admin") return undefined;
  return caller.kind === "key" ? caller.tenantId : -1;
}

/** The condition that restricts a caller to its own rows; undefined for the admin token. Other callers own nothing. */
export function ownedBy(caller: Caller, tenantId: Column): SQL | undefined {
  const owner = ownerOf(caller);
  return owner === undefined ? undefined : eq(tenantId, owner);
}

/**
 * The tenant of a request: a key's own tenant, which it may name or omit; with the admin token, the named one, which is
 * required. Naming another tenant is answered like naming one that does not exist.
 */
export function tenantFor(caller: Caller, named: number | undefined): number | undefined {
  if (caller.kind === "admin") return named;
  if (caller.kind !== "key" || (named !== undefined && named !== caller.tenantId)) return notFound("tenant");
  return caller.tenantId;
}
