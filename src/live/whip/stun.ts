import { createHmac, timingSafeEqual } from "node:crypto";
import { isIPv4 } from "node:net";
import { crc32 } from "node:zlib";
import ipaddr from "ipaddr.js";

/** Connectivity checks of ICE (RFC 8445, 7) as STUN (RFC 8489) messages. */

const HEADER_BYTES = 20;
const COOKIE = 0x2112a442;
const BINDING_REQUEST = 0x0001;
const BINDING_SUCCESS = 0x0101;
const ATTRIBUTE = {
  username: 0x0006,
  integrity: 0x0008,
  xorMappedAddress: 0x0020,
  useCandidate: 0x0025,
  fingerprint: 0x8028,
} as const;
const INTEGRITY_BYTES = 20;
const FINGERPRINT_XOR = 0x5354554e;
const MAX_ATTRIBUTES = 32;

export type BindingRequest = {
  transactionId: Buffer;
  /** The ICE user fragments of this server and of the peer. */
  ufrag: string;
  peerUfrag: string;
  isNominated: boolean;
  /** What MESSAGE-INTEGRITY covers, and its value. */
  covered: Buffer;
  integrity: Buffer;
};

/** Whether it is a STUN message (RFC 7983). */
export const isStun = (packet: Buffer): boolean =>
  packet.length >= HEADER_BYTES && (packet[0] as number) < 4 && packet.readUInt32BE(4) === COOKIE;

/** The binding request in a packet; null for anything else. It is not authenticated yet. */
export function readBindingRequest(packet: Buffer): BindingRequest | null {
  if (!isStun(packet) || packet.readUInt16BE(0) !== BINDING_REQUEST) return null;
  if (packet.readUInt16BE(2) + HEADER_BYTES !== packet.length) return null;
  let username = "";
  let isNominated = false;
  let at = HEADER_BYTES;
  for (let count = 0; count < MAX_ATTRIBUTES && at + 4 <= packet.length; count++) {
    const type = packet.readUInt16BE(at);
    const length = packet.readUInt16BE(at + 2);
    const value = packet.subarray(at + 4, at + 4 + length);
    if (value.length < length) return null;
    if (type === ATTRIBUTE.username) username = value.toString("latin1");
    else if (type === ATTRIBUTE.useCandidate) isNominated = true;
    else if (type === ATTRIBUTE.integrity) {
      const separator = username.indexOf(":");
      if (length !== INTEGRITY_BYTES || separator === -1) return null;
      // The length is that of a message that ends with this attribute (RFC 8489, 14.5).
      const covered = Buffer.from(packet.subarray(0, at));
      covered.writeUInt16BE(at + 4 + INTEGRITY_BYTES - HEADER_BYTES, 2);
      const ufrag = username.slice(0, separator);
      const peerUfrag = username.slice(separator + 1);
      const transactionId = Buffer.from(packet.subarray(8, HEADER_BYTES));
      return { transactionId, ufrag, peerUfrag, isNominated, covered, integrity: value };
    }
    at += 4 + length + ((4 - (length % 4)) % 4);
  }
  return null;
}

/** Whether the sender of a request knows the password. */
export function isAuthentic({ covered, integrity }: BindingRequest, password: string): boolean {
  return timingSafeEqual(createHmac("sha1", password).update(covered).digest(), integrity);
}

/** The success response to a request that came from this address. */
export function bindingResponse(
  { transactionId }: BindingRequest,
  { address, port, password }: { address: string; port: number; password: string },
): Buffer {
  const mapped = xorAddress(address, port, transactionId);
  const length = 4 + mapped.length + 4 + INTEGRITY_BYTES;
  const message = Buffer.alloc(HEADER_BYTES + length + 8);
  message.writeUInt16BE(BINDING_SUCCESS, 0);
  message.writeUInt32BE(COOKIE, 4);
  transactionId.copy(message, 8);
  let at = header(message, HEADER_BYTES, ATTRIBUTE.xorMappedAddress, mapped.length);
  at += mapped.copy(message, at);
  message.writeUInt16BE(length, 2);
  const integrity = createHmac("sha1", password).update(message.subarray(0, at)).digest();
  at = header(message, at, ATTRIBUTE.integrity, INTEGRITY_BYTES);
  at += integrity.copy(message, at);
  message.writeUInt16BE(length + 8, 2);
  const checksum = crc32(message.subarray(0, at));
  at = header(message, at, ATTRIBUTE.fingerprint, 4);
  message.writeUInt32BE((checksum ^ FINGERPRINT_XOR) >>> 0, at);
  return message;
}

function header(message: Buffer, at: number, type: number, length: number): number {
  return message.writeUInt16BE(length, message.writeUInt16BE(type, at));
}

/** XOR-MAPPED-ADDRESS (RFC 8489, 14.2). */
function xorAddress(address: string, port: number, transactionId: Buffer): Buffer {
  const bytes = Buffer.from(ipaddr.parse(address.replace(/%.*/, "")).toByteArray());
  const mask = Buffer.alloc(4 + transactionId.length);
  mask.writeUInt32BE(COOKIE, 0);
  transactionId.copy(mask, 4);
  const head = Buffer.of(0, isIPv4(address) ? 1 : 2, 0, 0);
  head.writeUInt16BE(port ^ (COOKIE >>> 16), 2);
  return Buffer.concat([head, bytes.map((byte, index) => byte ^ (mask[index] as number))]);
}
