const WARNING_MS = 60_000;

/** When a token ends, in ms since the epoch, as it says itself (RFC 7519, 4.1.4); nobody here can check that. */
export function expiryOf(token: string): number | null {
  try {
    const payload = token.split(".")[1]?.replaceAll("-", "+").replaceAll("_", "/") ?? "";
    const { exp } = JSON.parse(atob(payload)) as { exp?: unknown };
    return typeof exp === "number" ? exp * 1000 : null;
  } catch {
    return null;
  }
}

/** Calls `warn` a minute before the token ends, at once when that is less, never when it has. Gives what calls it off. */
export function beforeExpiry(token: string, warn: (expiresAt: Date) => void): () => void {
  const expiresAt = expiryOf(token);
  const leftMs = (expiresAt ?? 0) - Date.now();
  if (expiresAt === null || leftMs <= 0) return () => {};
  // A longer time than a timer holds would fire it at once.
  const timer = setTimeout(() => warn(new Date(expiresAt)), Math.min(2 ** 31 - 1, Math.max(0, leftMs - WARNING_MS)));
  return () => clearTimeout(timer);
}
