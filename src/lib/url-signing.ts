import { createHmac, createSecretKey, type KeyObject } from "node:crypto";

const derived = new Map<string, KeyObject>();

/** A key of its own for storage addresses: what signs them must sign nothing else. Derived once, it is asked for often. */
function addressKey(signingSecret: string): KeyObject {
  const known = derived.get(signingSecret);
  if (known) return known;
  const key = createSecretKey(createHmac("sha256", signingSecret).update("storage addresses").digest());
  derived.set(signingSecret, key);
  return key;
}

/** The base is asked for at each address: a port that the system chose is known only once the socket listens. */
export const urlSigning = (signingSecret: string, baseUrl: () => string) => ({
  secret: addressKey(signingSecret),
  get baseUrl() {
    return baseUrl();
  },
});
