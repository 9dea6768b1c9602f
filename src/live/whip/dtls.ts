import { createHash, createVerify, X509Certificate } from "node:crypto";
import type { DtlsServer } from "werift";
import type { Fingerprint } from "./offer.ts";
import { type SrtpKeys, SrtpTransport } from "./srtp.ts";
import type { Werift } from "./werift.ts";

export type DtlsIdentity = Pick<DtlsServer["options"], "cert" | "key" | "signatureHash"> & {
  /** SHA-256: hexadecimal with colons. */
  fingerprint: string;
};

/** A certificate for the DTLS handshakes of this process; an answer contains its fingerprint. */
export async function createIdentity(werift: Werift): Promise<DtlsIdentity> {
  const { certPem, keyPem, signatureHash } = await werift.CipherContext.createSelfSignedCertificateWithKey(
    { signature: werift.SignatureAlgorithm.ecdsa_3, hash: werift.HashAlgorithm.sha256_4 },
    werift.NamedCurveAlgorithm.secp256r1_23,
  );
  return { cert: certPem, key: keyPem, signatureHash, fingerprint: new X509Certificate(certPem).fingerprint256 };
}

const CONTENT = { alert: 21, handshake: 22 } as const;
const RECORD_HEADER_BYTES = 13;
const DTLS_1_2 = 0xfefd;
/** The level "warning", and its description (RFC 5246, 7.2). */
const CLOSE_NOTIFY = Buffer.of(1, 0);
const HANDSHAKE = { clientKeyExchange: 16, certificateVerify: 15, finished: 20 } as const;
/** AEAD_AES_128_GCM (RFC 7714) and AES128_CM_HMAC_SHA1_80 (RFC 5764, 4.1.2), preferred first. */
const PROFILES = { gcm: 7, cm: 1 } as const;
const KEY_BYTES = 16;
const SALT_BYTES = { [PROFILES.gcm]: 12, [PROFILES.cm]: 14 } as const;
/** HashAlgorithm of DTLS 1.2 (RFC 5246, 7.4.1.4.1); older ones are not accepted. */
const HASHES: Record<number, string> = { 4: "sha256", 5: "sha384", 6: "sha512" };

export type DtlsOptions = {
  werift: Werift;
  identity: DtlsIdentity;
  /** The fingerprints of the peer's certificate, as its offer states them. */
  fingerprints: readonly Fingerprint[];
  /** Packets of the handshake that are read. */
  maxPackets: number;
  send: (packet: Buffer) => void;
  onConnect: (srtp: SrtpTransport) => void;
  /** The peer has closed the connection. */
  onClose: () => void;
  onError: (error: Error) => void;
};

/** Whether it is a DTLS record (RFC 7983). */
export const isDtls = (packet: Buffer): boolean => {
  const type = packet[0] ?? 0;
  return type >= 20 && type <= 63 && packet.length >= RECORD_HEADER_BYTES;
};

/**
 * The server's side of a DTLS connection (RFC 5764), which yields the keys of SRTP. The library reads the handshake. It leaves to
 * its caller to verify whose certificate it is, and that the peer has its key.
 */
export class DtlsPeer {
  readonly #options: DtlsOptions;
  readonly #server: DtlsServer;
  readonly #transport: DtlsServer["options"]["transport"];
  #packets = 0;
  #state: "handshake" | "connected" | "closed" = "handshake";

  constructor(options: DtlsOptions) {
    const { werift, identity, send } = options;
    this.#options = options;
    this.#transport = {
      type: "udp",
      address: { address: "0.0.0.0", family: "IPv4", port: 0 },
      closed: false,
      onData: () => {},
      send: async (packet) => send(packet),
      close: async () => {},
    };
    const { fingerprint: _, ...own } = identity;
    this.#server = new werift.DtlsServer({
      ...own,
      transport: this.#transport,
      srtpProfiles: [PROFILES.gcm, PROFILES.cm],
      extendedMasterSecret: true,
      certificateRequest: true,
    });
    this.#server.onConnect.subscribe(() => this.#connected());
    this.#server.onClose.subscribe(() => this.#closed());
    this.#server.onError.subscribe((error) => this.#failed(error));
  }

  receive(packet: Buffer): void {
    if (this.#state === "closed" || !isDtls(packet)) return;
    if (this.#state === "handshake" && ++this.#packets > this.#options.maxPackets)
      return this.#failed(new Error("The handshake has too many packets."));
    // Records that are not encrypted belong to the handshake: later, others could send them.
    if (this.#state === "connected" && packet.readUInt16BE(3) === 0) return;
    if (this.#state === "handshake" && packet[0] === CONTENT.alert && packet.readUInt16BE(3) === 0)
      return this.#failed(new Error("The peer has ended the handshake with an alert."));
    try {
      this.#transport.onData(packet, ["0.0.0.0", 0]);
    } catch {
      // A truncated record.
    }
  }

  /** Sends a close_notify: without it, the peer notices only that packets are not answered. */
  close(): void {
    if (this.#state === "connected") this.#options.send(this.#closeNotify());
    this.#state = "closed";
  }

  /** The library sends no alerts. */
  #closeNotify(): Buffer {
    const { dtls, cipher, sessionType } = this.#server;
    const { epoch } = dtls;
    const sequenceNumber = ++dtls.recordSequenceNumber;
    const header = { type: CONTENT.alert, version: DTLS_1_2, epoch, sequenceNumber };
    const fragment = cipher.cipher.encrypt(sessionType, CLOSE_NOTIFY, header);
    const head = Buffer.alloc(RECORD_HEADER_BYTES);
    head[0] = CONTENT.alert;
    head.writeUInt16BE(DTLS_1_2, 1);
    head.writeUInt16BE(epoch, 3);
    head.writeUIntBE(sequenceNumber, 5, 6);
    head.writeUInt16BE(fragment.length, 11);
    return Buffer.concat([head, fragment]);
  }

  #connected(): void {
    if (this.#state !== "handshake") return;
    try {
      this.#verifyPeer();
      const { srtpProfile } = this.#server.srtp;
      if (srtpProfile !== PROFILES.gcm && srtpProfile !== PROFILES.cm) throw new Error("No profile of SRTP matches.");
      const keys = this.#server.extractSessionKeys(KEY_BYTES, SALT_BYTES[srtpProfile]);
      this.#state = "connected";
      this.#options.onConnect(new SrtpTransport(this.#options.werift, srtpKeys(keys), srtpProfile));
    } catch (error) {
      this.#failed(error as Error);
    }
  }

  /** RFC 8122, 5 and RFC 5246, 7.4.8. */
  #verifyPeer(): void {
    const certificate = this.#server.remoteCertificate;
    if (!certificate) throw new Error("The peer has no certificate.");
    const isKnown = this.#options.fingerprints.some(
      ({ algorithm, value }) => ALGORITHMS[algorithm] && digest(ALGORITHMS[algorithm], certificate) === value,
    );
    if (!isKnown) throw new Error("The certificate of the peer is not that of its offer.");
    const messages = this.#server.dtls.sortedHandshakeCache;
    const verify = messages.find(({ msg_type }) => msg_type === HANDSHAKE.certificateVerify);
    if (!verify) throw new Error("The peer does not prove that it has the key of its certificate.");
    const hash = HASHES[verify.fragment[0] ?? 0];
    const length = verify.fragment.readUInt16BE(2);
    if (!hash) throw new Error("The peer signs with an algorithm that is not supported.");
    const signed = createVerify(hash);
    for (const message of messages) {
      if (message.msg_type === HANDSHAKE.certificateVerify || message.msg_type === HANDSHAKE.finished) continue;
      signed.update(message.serialize());
    }
    const key = new X509Certificate(certificate).publicKey;
    if (!signed.verify(key, verify.fragment.subarray(4, 4 + length)))
      throw new Error("The signature of the peer is invalid.");
  }

  #closed(): void {
    if (this.#state === "connected") {
      this.#state = "closed";
      this.#options.onClose();
    } else this.#failed(new Error("The peer has ended the handshake."));
  }

  #failed(error: Error): void {
    if (this.#state === "closed") return;
    this.#state = "closed";
    this.#options.onError(error instanceof Error ? error : new Error(String(error)));
  }
}

const ALGORITHMS: Record<string, string> = { "sha-256": "sha256", "sha-384": "sha384", "sha-512": "sha512" };

const digest = (algorithm: string, certificate: Buffer) => createHash(algorithm).update(certificate).digest("hex");

type SessionKeys = ReturnType<DtlsServer["extractSessionKeys"]>;
const srtpKeys = ({ localKey, localSalt, remoteKey, remoteSalt }: SessionKeys): SrtpKeys => ({
  localMasterKey: localKey,
  localMasterSalt: localSalt,
  remoteMasterKey: remoteKey,
  remoteMasterSalt: remoteSalt,
});
