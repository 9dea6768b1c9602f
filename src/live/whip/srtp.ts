import { createSecretKey } from "node:crypto";
import type { SrtcpSession, SrtpSession } from "werift";
import { sourceOf } from "./rtp.ts";
import type { Werift } from "./werift.ts";

export type SrtpKeys = {
  localMasterKey: Buffer;
  localMasterSalt: Buffer;
  remoteMasterKey: Buffer;
  remoteMasterSalt: Buffer;
};

type Counter = { rollovers: number; highest: number };

/** Encrypts and decrypts with the keys of one connection (RFC 3711). */
export class SrtpTransport {
  readonly #rtp: SrtpSession;
  readonly #rtcp: SrtcpSession;
  /** By source. */
  readonly #counters = new Map<number, Counter>();

  constructor(werift: Werift, keys: SrtpKeys, profile: number) {
    this.#rtp = new werift.SrtpSession({ keys, profile });
    this.#rtcp = new werift.SrtcpSession({ keys, profile });
    for (const { cipher } of [this.#rtp.remoteContext, this.#rtcp.remoteContext, this.#rtcp.localContext])
      prepareKeys(cipher);
  }

  /** Null for a packet that is not authentic, or of a source in excess of `maxSources`. */
  decryptRtp(packet: Buffer, maxSources: number): Buffer | null {
    const source = sourceOf(packet);
    if (source === null) return null;
    const counter = this.#counters.get(source);
    if (!counter && this.#counters.size >= maxSources) return null;
    const sequence = packet.readUInt16BE(2);
    const rollovers = counter ? rolloversOf(sequence, counter) : 0;
    if (rollovers < 0) return null;
    try {
      // The library counts rollovers too, but loses count when many packets in a row are lost.
      const [plain] = this.#rtp.remoteContext.cipher.decryptRtp(packet, rollovers);
      if (!counter) this.#counters.set(source, { rollovers, highest: sequence });
      else if (rollovers > counter.rollovers) Object.assign(counter, { rollovers, highest: sequence });
      else if (rollovers === counter.rollovers) counter.highest = Math.max(counter.highest, sequence);
      return plain;
    } catch {
      return null;
    }
  }

  /** Null for a packet that is not authentic. */
  decryptRtcp(packet: Buffer): Buffer | null {
    try {
      return this.#rtcp.decrypt(packet);
    } catch {
      return null;
    }
  }

  encryptRtcp(packet: Buffer): Buffer {
    return this.#rtcp.encrypt(packet);
  }
}

const KEYS = ["srtpSessionKey", "srtcpSessionKey", "srtpSessionAuthTag", "srtcpSessionAuthTag"] as const;

/** Node takes four times as long for each packet with a key in a Buffer. */
function prepareKeys(cipher: Partial<Record<(typeof KEYS)[number], unknown>>): void {
  for (const name of KEYS) {
    const key = cipher[name];
    if (Buffer.isBuffer(key)) cipher[name] = createSecretKey(key);
  }
}

/** RFC 3711, 3.3.1. */
function rolloversOf(sequence: number, { rollovers, highest }: Counter): number {
  if (highest < 0x8000) return sequence - highest > 0x8000 ? rollovers - 1 : rollovers;
  return highest - 0x8000 > sequence ? rollovers + 1 : rollovers;
}
