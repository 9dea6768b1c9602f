import { HttpError } from "#lib/base";

/** `none`: the user typed the URL or used a bookmark, so no page sent it. */
const OWN = ["same-origin", "none"];

/**
 * Throws 403 `cross_site` for a request that a page of another origin sent. A browser says where it comes from in
 * Sec-Fetch-Site (Fetch Metadata), which no page can change; an older one sends Origin with every change (Fetch standard,
 * 3.2), which must be that of this server: of its base URL, or of the host that the request names, because behind a proxy the
 * scheme differs. A program that is no browser sends neither.
 */
export function requireSameOrigin(headers: Headers, baseUrl: string): void {
  const site = headers.get("sec-fetch-site");
  if (site !== null) {
    if (!OWN.includes(site)) refuse();
    return;
  }
  requireOwnOrigin(headers, baseUrl);
}

/** Throws 403 `cross_site` for a request with the Origin of another site, whatever its method. */
export function requireOwnOrigin(headers: Headers, baseUrl: string): void {
  const origin = headers.get("origin");
  if (origin === null || origin === new URL(baseUrl).origin) return;
  // `null` is the origin of sandboxed frames and of some redirects.
  if (!URL.canParse(origin) || new URL(origin).host !== headers.get("host")) refuse();
}

function refuse(): never {
  throw new HttpError(
    403,
    "cross_site",
    "Pages of other origins cannot change anything with a session of this server.",
  );
}

/** Throws 415 unless the body is declared as JSON, which a form of another site cannot do without a preflight. */
export function requireJsonType(headers: Headers): void {
  if (/^application\/json *(?:;|$)/i.test(headers.get("content-type") ?? "")) return;
  throw new HttpError(415, "unsupported_media_type", "Send JSON with Content-Type: application/json.");
}
