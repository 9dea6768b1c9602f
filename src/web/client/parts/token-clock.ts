const WARNING_MS = 60_000;
/** 23 days; a timer has at most 2^31-1 ms. */
const LONG_MS = 2e9;

/** Expiry of a token in ms since the epoch, from its claims (RFC 7519, 4.1.4), which cannot be verified here. */
export function expiryOf(token: string): number | null {
  try {
    const payload = token.split(".")[1]?.replaceAll("-", "+").replaceAll("_", "/") ?? "";
    const { exp } = JSON.parse(atob(payload)) as { exp?: unknown };
    return typeof exp === "number" ? exp * 1000 : null;
  } catch {
    return null;
  }
}

/**
 * Calls `warn` a minute before the token expires, immediately when that is less, never when it has expired. Returns a
 * function that cancels it.
 */
export function beforeExpiry(token: string, warn: (expiresAt: Date) => void): () => void {
  const expiresAt = expiryOf(token);
  const leftMs = (expiresAt ?? 0) - Date.now();
  if (expiresAt === null || leftMs <= 0) return () => {};
  let timer: ReturnType<typeof setTimeout>;
  const wait = () => {
    const waitMs = expiresAt - WARNING_MS - Date.now();
    // A delay beyond a timer's maximum would fire immediately.
    timer = setTimeout(() => (waitMs > LONG_MS ? wait() : warn(new Date(expiresAt))), Math.min(LONG_MS, waitMs));
  };
  wait();
  return () => clearTimeout(timer);
}
