/** The cookies that this server sets. All are HttpOnly: no script of a page needs them. */

type Cookie = {
  name: string;
  /** Empty: the browser deletes the cookie. */
  value: string;
  path: string;
  /** `frame`: sent from frames in pages of other sites too, of which each has cookies of its own (CHIPS). */
  sameSite: "Strict" | "Lax" | "frame";
  isSecure: boolean;
  /** Default: until the browser is closed. */
  maxAgeSeconds?: number;
};

/** A Set-Cookie header (RFC 6265). */
export function setCookie({ name, value, path, sameSite, isSecure, maxAgeSeconds }: Cookie): string {
  const maxAge = value === "" ? 0 : maxAgeSeconds;
  // Browsers refuse SameSite=None without Secure. Lax then covers frames in pages of the same site.
  const site = sameSite === "frame" ? (isSecure ? "None" : "Lax") : sameSite;
  return [
    `${name}=${value}; Path=${path}; HttpOnly; SameSite=${site}`,
    isSecure ? "; Secure" : "",
    sameSite === "frame" && isSecure ? "; Partitioned" : "",
    maxAge === undefined ? "" : `; Max-Age=${maxAge}`,
  ].join("");
}

/** The value of a cookie of a request; null without it. With several paths the most specific one is first (RFC 6265, 5.4). */
export function readCookie(headers: Headers, name: string): string | null {
  for (const part of (headers.get("cookie") ?? "").split(";")) {
    const [found, value = ""] = part.trim().split("=");
    if (found === name && value !== "") return value;
  }
  return null;
}

/**
 * Whether the browser reached the server over TLS, which only its Origin says behind a proxy. A page without referrer sends
 * `null` instead; then the base URL decides.
 */
export function isSecureRequest(headers: Headers, baseUrl: string): boolean {
  const origin = headers.get("origin");
  return (origin === null || origin === "null" ? baseUrl : origin).startsWith("https:");
}
