import type { Claims } from "./claims.ts";

/** More than a person has groups. */
const MAX_NAMES = 1000;
const MAX_DEPTH = 8;

/**
 * The names that a claim has. `claim` is its name, or a path to it with dots, such as `realm_access.roles` of Keycloak. Its value is
 * a text, a list of texts, or an object with the names as keys, as Zitadel has it. Empty for any other value.
 */
export function namesIn(claims: Claims, claim: string | undefined): string[] {
  const value = claim === undefined ? undefined : (own(claims, claim) ?? along(claims, claim.split(".")));
  if (typeof value === "string") return [value];
  if (Array.isArray(value)) return value.slice(0, MAX_NAMES).filter((one) => typeof one === "string");
  return isObject(value) ? Object.keys(value).slice(0, MAX_NAMES) : [];
}

const isObject = (value: unknown): value is object => typeof value === "object" && value !== null;

const own = (value: unknown, name: string): unknown =>
  isObject(value) && Object.hasOwn(value, name) ? (value as Record<string, unknown>)[name] : undefined;

const along = (claims: Claims, path: string[]): unknown =>
  path.length <= MAX_DEPTH ? path.reduce<unknown>(own, claims) : undefined;
