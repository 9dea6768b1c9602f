import { createHmac, hash, randomBytes, timingSafeEqual } from "node:crypto";

const ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";

/** `length` characters of [A-Za-z0-9], uniformly distributed: bytes that would favor the first letters are rejected. */
export function randomName(length: number): string {
  let name = "";
  while (name.length < length) {
    for (const byte of randomBytes(length * 2)) {
      if (byte < 248 && name.length < length) name += ALPHABET[byte % 62];
    }
  }
  return name;
}

/** An API key: `svc_` and 40 characters (238 bits). */
export const newApiToken = () => `svc_${randomName(40)}`;
/** The id of a playback signing key in token headers and claims. */
export const newSigningKeyId = () => `sk_${randomName(22)}`;
export const newExternalId = () => `vid_${randomName(22)}`;

export const newOrderId = () => `ord_${randomName(22)}`;
/** The stream key of a live channel: 238 bits. */
export const newStreamKey = () => `live_${randomName(40)}`;

/** Lowercase hex. Tokens have full entropy, so a plain hash is sufficient; passwords use scrypt. */
export const sha256 = (value: string | Uint8Array) => hash("sha256", value);

/** HMAC-SHA256, base64url: 256 bits. */
export const hmac = (secret: string, value: string) => createHmac("sha256", secret).update(value).digest("base64url");

/** Constant-time comparison. Hashing first makes the lengths equal. */
export const sameSecret = (a: string, b: string) =>
  timingSafeEqual(hash("sha256", a, "buffer"), hash("sha256", b, "buffer"));
