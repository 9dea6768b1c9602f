import { createHmac, randomBytes } from "node:crypto";

const SLOT_MS = 60_000;

/**
 * Cookies of handshakes (draft-sharabayko-srt-01, section 4.3.1.1): a keyed hash of the caller's address and of the time.
 * A caller that returns one receives at its address. Valid for at least a minute, and at most two.
 */
export class CookieJar {
  readonly #key = randomBytes(32);

  /** `now` in milliseconds of a monotonic clock. Never 0. */
  create(address: string, port: number, now: number): number {
    return this.#of(address, port, Math.floor(now / SLOT_MS));
  }

  isValid(cookie: number, { address, port, now }: { address: string; port: number; now: number }): boolean {
    const slot = Math.floor(now / SLOT_MS);
    return cookie === this.#of(address, port, slot) || cookie === this.#of(address, port, slot - 1);
  }

  #of(address: string, port: number, slot: number): number {
    const hash = createHmac("sha256", this.#key).update(`${address}|${port}|${slot}`).digest();
    return hash.readUInt32BE() || 1;
  }
}
