/** The first of `etags` that If-None-Match names (RFC 9110, 13.1.2), compared weakly; null without a match. */
export function matchingTag(headers: Headers, etags: readonly string[]): string | null {
  const header = headers.get("if-none-match");
  if (header === null) return null;
  if (header.trim() === "*") return etags[0] ?? null;
  const named = header.split(",").map((tag) => tag.trim().replace(/^W\//, ""));
  return etags.find((etag) => named.includes(etag)) ?? null;
}
