import { createHmac, createSecretKey, type KeyObject } from "node:crypto";

const derived = new Map<string, KeyObject>();

/**
 * A separate key for storage URLs, so that a signature for one purpose is not valid for another. Derived once and
 * cached.
 */
function addressKey(signingSecret: string): KeyObject {
  const known = derived.get(signingSecret);
  if (known) return known;
  const key = createSecretKey(createHmac("sha256", signingSecret).update("storage addresses").digest());
  derived.set(signingSecret, key);
  return key;
}

/** The base is read for each URL: a port chosen by the system is known only once the socket listens. */
export const urlSigning = (signingSecret: string, baseUrl: () => string) => ({
  secret: addressKey(signingSecret),
  get baseUrl() {
    return baseUrl();
  },
});
