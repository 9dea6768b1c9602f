import { createDecipheriv, pbkdf2 } from "node:crypto";
import { promisify } from "node:util";

/*
 * Encryption of SRT (draft-sharabayko-srt-01, sections 3.2.2 and 6): the sender generates the keys of its stream, and sends
 * them encrypted with a key that is derived from the passphrase.
 */

/** Version 1, and packet type 2; "HAI" in five bits each. */
const FIRST_BYTE = 0x12;
const SIGNATURE = 0x2029;
const AES_CTR = 2;
const NO_AUTHENTICATION = 0;
const HEADER_BYTES = 16;
const SALT_BYTES = 16;
/** Integrity check of the key wrap (RFC 3394, 2.2.3.1). */
const CHECK_BYTES = 8;
const WRAP_IV = Buffer.alloc(CHECK_BYTES, 0xa6);
const KEY_BYTES = new Set([16, 24, 32]);
const ITERATIONS = 2048;
/** Bits of KK in key material and in data packets: which of two keys (sections 3.1 and 3.2.2). */
const KEYS = ["even", "odd"] as const;
/** The part of an IV that the salt fills: 14 bytes, into which the sequence number is mixed. The counter of blocks follows. */
const IV_SALT_BYTES = 14;
const IV_SEQUENCE_AT = 10;

type KeyName = (typeof KEYS)[number];
export type StreamKeys = { salt: Buffer; even: Buffer | null; odd: Buffer | null };

const derive = promisify(pbkdf2);

/** The key that keys are encrypted with, which takes a millisecond on another thread. */
export const deriveKey = (passphrase: string, salt: Buffer, keyBytes: number): Promise<Buffer> =>
  derive(passphrase, salt.subarray(-8), ITERATIONS, keyBytes, "sha1");

/** What a key material message has in clear text, and its encrypted keys. */
export type KeyMessage = { salt: Buffer; keyBytes: number; wrapped: Buffer; names: KeyName[] };

/** The keys of a message. Null when they are encrypted with another key. */
export function unwrapKeys({ salt, keyBytes, wrapped, names }: KeyMessage, key: Buffer): StreamKeys | null {
  let keys: Buffer;
  try {
    const cipher = createDecipheriv(`id-aes${keyBytes * 8}-wrap`, key, WRAP_IV);
    keys = Buffer.concat([cipher.update(wrapped), cipher.final()]);
  } catch {
    return null;
  }
  if (keys.length !== keyBytes * names.length) return null;
  const result: StreamKeys = { salt, even: null, odd: null };
  for (const [index, name] of names.entries()) result[name] = keys.subarray(index * keyBytes, (index + 1) * keyBytes);
  return result;
}

/** Null when the message is malformed, or of another cipher. */
export function readKeyMessage(message: Buffer): KeyMessage | null {
  if (message.length < HEADER_BYTES + SALT_BYTES) return null;
  const [flags, cipher, authentication, saltWords, keyWords] = [3, 8, 9, 14, 15].map((at) => message.readUInt8(at));
  const names = KEYS.filter((_, bit) => (((flags as number) >> bit) & 1) === 1);
  const keyBytes = (keyWords as number) * 4;
  const end = HEADER_BYTES + SALT_BYTES + CHECK_BYTES + keyBytes * names.length;
  if (message[0] !== FIRST_BYTE || message.readUInt16BE(1) !== SIGNATURE) return null;
  if (cipher !== AES_CTR || authentication !== NO_AUTHENTICATION || (saltWords as number) * 4 !== SALT_BYTES)
    return null;
  if (names.length === 0 || !KEY_BYTES.has(keyBytes) || message.length !== end) return null;
  const salt = Buffer.from(message.subarray(HEADER_BYTES, HEADER_BYTES + SALT_BYTES));
  return { salt, keyBytes, wrapped: Buffer.from(message.subarray(HEADER_BYTES + SALT_BYTES)), names };
}

/**
 * The payload of a data packet with that sequence number. `kk`: the bits of its header, 1 for the even key and 2 for the
 * odd one. Null without that key.
 */
export function decrypt(keys: StreamKeys, kk: number, sequence: number, payload: Buffer): Buffer | null {
  const key = kk === 1 ? keys.even : kk === 2 ? keys.odd : null;
  if (key === null) return null;
  const iv = Buffer.alloc(16);
  iv.writeUInt32BE(sequence, IV_SEQUENCE_AT);
  for (let at = 0; at < IV_SALT_BYTES; at++) iv[at] = (iv[at] as number) ^ (keys.salt[at] as number);
  return createDecipheriv(`aes-${key.length * 8}-ctr`, key, iv).update(payload);
}
