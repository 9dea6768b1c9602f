import { createHmac, hash, randomBytes, timingSafeEqual } from "node:crypto";

const ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";

/** `length` characters of [A-Za-z0-9], uniform: bytes that would favour the first letters are thrown away. */
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
/** What the header or the claims of a playback token name its key by. */
export const newSigningKeyId = () => `sk_${randomName(22)}`;
export const newExternalId = () => `vid_${randomName(22)}`;

export const newOrderId = () => `ord_${randomName(22)}`;
/** What a live channel is published with: 238 bits. */
export const newStreamKey = () => `live_${randomName(40)}`;

/** Lower-case hex. Tokens have full entropy, so a plain hash is enough; passwords go through scrypt instead. */
export const sha256 = (value: string | Uint8Array) => hash("sha256", value);

/** HMAC-SHA256, base64url: 256 bits. */
export const hmac = (secret: string, value: string) => createHmac("sha256", secret).update(value).digest("base64url");

/** Equality in a time that does not tell how much was right. Hashing first makes the lengths equal. */
export const sameSecret = (a: string, b: string) =>
  timingSafeEqual(hash("sha256", a, "buffer"), hash("sha256", b, "buffer"));
