import { decrypt, deriveKey, type KeyMessage, readKeyMessage, type StreamKeys, unwrapKeys } from "./key-material.ts";

/** The most salts of one connection: libraries use one salt for all their keys. */
const MAX_SALTS = 16;

/** The keys of one connection. A sender alternates between two, and announces the next one while it uses the other. */
export class StreamCipher {
  readonly #passphrase: string;
  #keys: StreamKeys | null = null;
  #message: Buffer | null = null;
  #isBusy = false;
  /** The last key that keys were encrypted with. */
  #derived: { salt: Buffer; key: Buffer } | null = null;
  #salts = 0;

  constructor(passphrase: string) {
    this.#passphrase = passphrase;
  }

  /**
   * Takes the keys of a key material message. False when it is malformed, or they are encrypted with another passphrase,
   * or while another message is being decrypted: that takes time, and the sender repeats the message.
   */
  async accept(message: Buffer): Promise<boolean> {
    if (this.#message?.equals(message)) return true;
    if (this.#isBusy) return false;
    this.#isBusy = true;
    try {
      const read = readKeyMessage(message);
      const key = read && (await this.#keyFor(read));
      const keys = read && key && unwrapKeys(read, key);
      if (!keys) return false;
      // After a change of keys only the new one is announced, while packets with the old one may be sent again.
      const old = this.#keys?.salt.equals(keys.salt) ? this.#keys : null;
      this.#keys = { salt: keys.salt, even: keys.even ?? old?.even ?? null, odd: keys.odd ?? old?.odd ?? null };
      this.#message = message;
      return true;
    } finally {
      this.#isBusy = false;
    }
  }

  /** Null when there were too many salts. */
  async #keyFor({ salt, keyBytes }: KeyMessage): Promise<Buffer | null> {
    if (this.#derived?.salt.equals(salt) && this.#derived.key.length === keyBytes) return this.#derived.key;
    if (++this.#salts > MAX_SALTS) return null;
    const key = await deriveKey(this.#passphrase, salt, keyBytes);
    this.#derived = { salt, key };
    return key;
  }

  /** The payload of a data packet; `kk` and null as for `decrypt` of key-material.ts. */
  decrypt(kk: number, sequence: number, payload: Buffer): Buffer | null {
    return this.#keys && decrypt(this.#keys, kk, sequence, payload);
  }
}
