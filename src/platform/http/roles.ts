import { HttpError } from "#lib/base";
import type { Role } from "#model/enums.ts";
import { type Caller, SCOPES, type Scope } from "./caller.ts";
import type { Route } from "./route.ts";

/** The scopes of each role: an editor has no part in keys, webhooks and billing, and a viewer changes nothing. */
const SCOPES_OF: Record<Role, readonly Scope[]> = {
  admin: SCOPES,
  editor: ["assets:read", "assets:write", "playback:read"],
  viewer: ["assets:read", "playback:read"],
};

/** Those of `scopes` that a user of the role may have; all of them without a role. */
export const scopesWithin = (role: Role | undefined, scopes: readonly string[]): readonly string[] =>
  role === undefined || role === "admin" ? scopes : scopes.filter((scope) => SCOPES_OF[role].includes(scope as Scope));

const isChange = (method: string) => method !== "GET" && method !== "HEAD";

/** What people of every role do: their own account, and what plays. */
const isForAll = (route: Route) =>
  route.credential === "session" ||
  route.ownAccount === true ||
  route.reads === true ||
  route.scopes.includes("playback:read");

/** Why the caller's role, or having none, excludes the route; null when it does not. */
export function roleRefusal(route: Route, caller: Caller, method: string): string | null {
  if (route.forAdmins) {
    if (caller.kind === "admin" || (caller.kind === "key" && caller.session && caller.role === "admin")) return null;
    return "Only users with the role admin may do this, in a session.";
  }
  if (caller.kind !== "key" || caller.role === undefined || caller.role === "admin") return null;
  const { role, scopes } = caller;
  const lacksScope = route.scopes.length > 0 && !route.scopes.some((scope) => scopes.includes(scope));
  // A device token may have fewer scopes than its user: then the scope is what lacks.
  const isExcluded = lacksScope && !route.scopes.some((scope) => SCOPES_OF[role].includes(scope));
  const isRefused = isExcluded || (role === "viewer" && isChange(method) && !isForAll(route));
  return isRefused ? `The role ${role} does not allow this; ask an admin of the tenant.` : null;
}

/** Throws 403 `forbidden_role` where `roleRefusal` has a reason. */
export function requireRole(route: Route, caller: Caller, method: string): void {
  const reason = roleRefusal(route, caller, method);
  if (reason !== null) throw new HttpError(403, "forbidden_role", reason);
}
