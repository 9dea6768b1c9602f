import { withoutTrailing } from "#lib/base";

/** `/v1/translate` below a base that may already end in `/v1`, or in all of it. */
export function serviceUrl(base: string, path: string): URL {
  const url = new URL(base);
  const [route = "", query] = path.split("?", 2);
  const stem = withoutTrailing(url.pathname, "/");
  const steps = route.split("/").map((_, count, all) => all.slice(0, count + 1).join("/"));
  const shared = steps.findLast((step) => step !== "" && stem.endsWith(step)) ?? "";
  url.pathname = stem + route.slice(shared.length);
  if (query !== undefined) url.search = query;
  return url;
}

/** Parses Retry-After: seconds, or a date (RFC 9110, 10.2.3). Null when missing. */
export function retryAfterMs(header: string | null | undefined): number | null {
  const ms = /^\d{1,9}$/.test(header ?? "") ? Number(header) * 1000 : Date.parse(header ?? "") - Date.now();
  return Number.isNaN(ms) ? null : Math.max(0, ms);
}
