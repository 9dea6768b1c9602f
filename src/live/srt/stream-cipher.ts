import { decrypt, type StreamKeys, unwrapKeys } from "./key-material.ts";

/** The keys of one connection. A sender uses two in turn, and announces the next one while it uses the other. */
export class StreamCipher {
  readonly #passphrase: string;
  #keys: StreamKeys | null = null;
  #message: Buffer | null = null;
  #isBusy = false;

  constructor(passphrase: string) {
    this.#passphrase = passphrase;
  }

  /**
   * Takes the keys of a key material message. False when they are encrypted with another passphrase, or while another
   * message is being decrypted: that takes time, and the sender repeats the message.
   */
  async accept(message: Buffer): Promise<boolean> {
    if (this.#message?.equals(message)) return true;
    if (this.#isBusy) return false;
    this.#isBusy = true;
    try {
      const keys = await unwrapKeys(message, this.#passphrase);
      if (keys === null) return false;
      // After a change of keys only the new one is announced, while packets with the old one may be sent again.
      const old = this.#keys?.salt.equals(keys.salt) ? this.#keys : null;
      this.#keys = { salt: keys.salt, even: keys.even ?? old?.even ?? null, odd: keys.odd ?? old?.odd ?? null };
      this.#message = message;
      return true;
    } finally {
      this.#isBusy = false;
    }
  }

  /** The payload of a data packet; `kk` and null as for `decrypt` of key-material.ts. */
  decrypt(kk: number, sequence: number, payload: Buffer): Buffer | null {
    return this.#keys && decrypt(this.#keys, kk, sequence, payload);
  }
}
