import type { PlaybackRestrictionRow } from "#storage/db/schema-playback-ids.ts";

type Restriction = Pick<PlaybackRestrictionRow, "allowedDomains" | "allowNoReferrer" | "allowNoUserAgent">;

/**
 * Whether a restriction allows a request with these headers: by the host of `Referer`, or else of `Origin`, which a page can
 * reduce but not invent, and by `User-Agent`.
 */
export function allows({ allowedDomains, allowNoReferrer, allowNoUserAgent }: Restriction, headers: Headers): boolean {
  if (!allowNoUserAgent && !headers.get("user-agent")) return false;
  const host = hostIn(headers.get("referer")) ?? hostIn(headers.get("origin"));
  if (host === null) return allowNoReferrer;
  return allowedDomains.some((domain) => {
    if (domain === "*") return true;
    return domain.startsWith("*.") ? host.endsWith(domain.slice(1)) : host === domain;
  });
}

/** Null without a URL; `null` is the origin of a page that has none. */
function hostIn(header: string | null): string | null {
  if (!header) return null;
  try {
    return new URL(header).hostname || null;
  } catch {
    return null;
  }
}
