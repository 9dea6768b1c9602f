import * as v from "valibot";
import { expect } from "vitest";
import type { Route } from "#platform/http/route.ts";
import type { Answer } from "./client.ts";

/** Any route can respond with these, which the document declares once, as `default`. */
const EVERYWHERE = new Set([405, 500, 503, 507]);

const patternOf = (path: string) => new RegExp(`^${path.replaceAll(/\*\*:\w+/g, ".*").replaceAll(/:\w+/g, "[^/]+")}$`);

/**
 * Checks every response against the route table, from which the OpenAPI document is derived: a declared status, and a
 * body with exactly the declared fields. So every test also verifies the document.
 */
export function conformance(routes: readonly Route[]) {
  const table = routes.filter((route) => !route.hidden).map((route) => ({ route, pattern: patternOf(route.path) }));
  // Literal segments take precedence over parameters, as in the router.
  table.sort((a, b) => (a.route.path.match(/:/g)?.length ?? 0) - (b.route.path.match(/:/g)?.length ?? 0));
  return (method: string, pathname: string, { status, body, text }: Answer): void => {
    const found = table.find(
      ({ route, pattern }) => (route.method === method || route.alias === method) && pattern.test(pathname),
    );
    if (!found || EVERYWHERE.has(status)) return;
    const { route } = found;
    const about = `${method} ${route.path} answered ${status} ${text.slice(0, 200)}`;
    if (status >= 400) {
      expect(told(route), about).toContain(status);
      return;
    }
    expect(Object.keys(route.responses).map(Number), about).toContain(status);
    const schema = route.responses[status];
    if (!schema || body === undefined) return;
    const parsed = v.safeParse(schema, body);
    expect(parsed.success ? [] : v.flatten(parsed.issues).nested, about).toEqual([]);
    if (parsed.success) expect(parsed.output, about).toEqual(body);
  };
}

function told(route: Route): number[] {
  const statuses = Object.keys(route.errors ?? {}).map(Number);
  if (route.credential !== "none") statuses.push(401);
  if (route.scopes.length > 0 || route.forAdmins) statuses.push(403);
  // A viewer changes nothing.
  if (route.credential === "key" && route.method !== "GET") statuses.push(403);
  if (route.params) statuses.push(404);
  if (route.body) statuses.push(400, 413, 415, 422);
  if (route.query || route.idempotent) statuses.push(422);
  if (route.limit) statuses.push(429);
  return statuses;
}
