import ipaddr from "ipaddr.js";
import { plainAddress } from "#lib/network";
import { CONTROL, controlPacket, HEADER_BYTES, timestampOf } from "./packets.ts";

/*
 * The handshake of SRT (draft-sharabayko-srt-01, sections 3.2.1 and 4.3.1): of the listener, with version 5.
 */

const CONTENT_BYTES = 48;
const VERSION = 5;
/** Extension field of the induction response: the listener knows version 5 (section 4.3.1.1). */
const MAGIC = 0x4a17;
export const HANDSHAKE_TYPE = { induction: 1, conclusion: 0xffffffff } as const;
/** Handshake types from here on are rejections (section 3.2.1, table 7). */
const REJECTION_BASE = 1000;

/** Types of extensions, and the bits of the extension field that announce them (section 3.2.1, tables 3 and 5). */
const EXTENSION = {
  request: 1,
  response: 2,
  key: 3,
  keyResponse: 4,
  streamId: 5,
  congestion: 6,
  filter: 7,
  group: 8,
} as const;
const EXTENSION_FIELD = { request: 1, key: 2 } as const;

/** Flags of the handshake extension (section 3.2.1.1.1). */
const FLAG = {
  sendTime: 1,
  receiveTime: 2,
  crypt: 4,
  lateDrop: 8,
  periodicNak: 16,
  retransmit: 32,
  stream: 64,
} as const;
const FLAGS = FLAG.sendTime | FLAG.receiveTime | FLAG.crypt | FLAG.lateDrop | FLAG.periodicNak | FLAG.retransmit;
/** The version of the SRT library whose features are the same: 1.5.0. */
const LIBRARY_VERSION = 0x010500;
const RESPONSE_BYTES = 12;
const MAX_STREAM_ID_BYTES = 512;
const MTU = 1500;
/** Below this no packet of a transport stream fits. */
const MIN_MTU = 300;

/** The fields of every handshake. */
export type Handshake = {
  version: number;
  encryption: number;
  /** Bits of the extensions. */
  extensionField: number;
  initialSequence: number;
  mtu: number;
  type: number;
  socketId: number;
  cookie: number;
  /** Microseconds of the caller's clock. */
  timestamp: number;
};

/** What the extensions of a conclusion say. */
export type Extensions = {
  /** Milliseconds; null: the caller sent no handshake extension. */
  latencyMs: number | null;
  isStreamMode: boolean;
  streamId: string;
  /** The key material message of a caller that encrypts. */
  keyMaterial: Buffer | null;
  /** Name of the congestion control. */
  congestion: string;
  hasFilter: boolean;
  isGroup: boolean;
};

/** Null when the packet is truncated. */
export function readHandshake(packet: Buffer): Handshake | null {
  if (packet.length < HEADER_BYTES + CONTENT_BYTES) return null;
  const field = (at: number) => packet.readUInt32BE(HEADER_BYTES + at);
  return {
    version: field(0),
    encryption: packet.readUInt16BE(HEADER_BYTES + 4),
    extensionField: packet.readUInt16BE(HEADER_BYTES + 6),
    initialSequence: field(8) & 0x7fffffff,
    mtu: field(12),
    type: field(20),
    socketId: field(24),
    cookie: field(28),
    timestamp: timestampOf(packet),
  };
}

/** Null when they are malformed. */
export function readExtensions(packet: Buffer): Extensions | null {
  const found: Extensions = {
    latencyMs: null,
    isStreamMode: false,
    streamId: "",
    keyMaterial: null,
    congestion: "live",
    hasFilter: false,
    isGroup: false,
  };
  let at = HEADER_BYTES + CONTENT_BYTES;
  while (at + 4 <= packet.length) {
    const type = packet.readUInt16BE(at);
    const end = at + 4 + packet.readUInt16BE(at + 2) * 4;
    if (end > packet.length) return null;
    if (!readExtension(type, packet.subarray(at + 4, end), found)) return null;
    at = end;
  }
  return found;
}

function readExtension(type: number, content: Buffer, found: Extensions): boolean {
  switch (type) {
    case EXTENSION.request:
      if (content.length < RESPONSE_BYTES) return false;
      found.isStreamMode = (content.readUInt32BE(4) & FLAG.stream) !== 0;
      // The sender's half states the latency that it wants the receiver to have.
      found.latencyMs = content.readUInt16BE(10);
      return true;
    case EXTENSION.key:
      found.keyMaterial = Buffer.from(content);
      return true;
    case EXTENSION.streamId:
      if (content.length > MAX_STREAM_ID_BYTES) return false;
      found.streamId = textOf(content);
      return true;
    case EXTENSION.congestion:
      found.congestion = textOf(content);
      return true;
    case EXTENSION.filter:
      found.hasFilter = true;
      return true;
    case EXTENSION.group:
      found.isGroup = true;
      return true;
    default:
      return true;
  }
}

/** Texts and addresses are written as 32-bit words of the other byte order (section 3.2.1.3). */
const swapped = (words: Buffer): Buffer => Buffer.from(words).swap32();
/** Padded with zeros. */
function textOf(words: Buffer): string {
  const text = swapped(words).toString("utf8");
  const end = text.indexOf("\0");
  return end === -1 ? text : text.slice(0, end);
}

/** Who an answer is sent to. */
export type Caller = { address: string; socketId: number };

type Answer = {
  caller: Caller;
  timestamp: number;
  extensionField: number;
  initialSequence: number;
  mtu: number;
  flowWindow: number;
  type: number;
  socketId: number;
  cookie: number;
};

function answer(fields: Answer, extensionBytes = 0): Buffer {
  const { caller, timestamp, extensionField, initialSequence, mtu, flowWindow, type, socketId, cookie } = fields;
  const header = { type: CONTROL.handshake, timestamp, destination: caller.socketId };
  const packet = controlPacket(header, CONTENT_BYTES + extensionBytes);
  packet.writeUInt32BE(VERSION, HEADER_BYTES);
  packet.writeUInt16BE(extensionField, HEADER_BYTES + 6);
  const words = [initialSequence, mtu, flowWindow, type, socketId, cookie];
  for (const [index, word] of words.entries()) packet.writeUInt32BE(word, HEADER_BYTES + 8 + index * 4);
  const address = ipaddr.parse(plainAddress(caller.address)).toByteArray();
  swapped(Buffer.from(address)).copy(packet, HEADER_BYTES + 32);
  return packet;
}

const echoed = ({ initialSequence, mtu }: Handshake, address: string, socketId: number) => ({
  caller: { address, socketId },
  timestamp: 0,
  initialSequence,
  mtu: Math.min(MTU, mtu),
});

/** The answer to an induction, of the same size. Nothing is kept of it: the caller returns the cookie. */
export const inductionAnswer = (handshake: Handshake, address: string, cookie: number): Buffer =>
  answer({
    ...echoed(handshake, address, handshake.socketId),
    extensionField: MAGIC,
    flowWindow: 0,
    type: HANDSHAKE_TYPE.induction,
    socketId: handshake.socketId,
    cookie,
  });

/** The answer to a conclusion that is rejected with a reason of rejections.ts. It is not larger than the conclusion. */
export const rejection = (handshake: Handshake, address: string, reason: number): Buffer =>
  answer({
    ...echoed(handshake, address, handshake.socketId),
    extensionField: 0,
    flowWindow: 0,
    type: REJECTION_BASE + reason,
    socketId: handshake.socketId,
    cookie: handshake.cookie,
  });

/**
 * The answer to a conclusion that is accepted. `socketId` is that of the connection here; key material that was accepted
 * is repeated.
 */
export function acceptance(
  handshake: Handshake,
  address: string,
  accepted: { socketId: number; flowWindow: number; latencyMs: number; keyMaterial: Buffer | null },
): Buffer {
  const { socketId, flowWindow, latencyMs, keyMaterial } = accepted;
  const fields = {
    ...echoed(handshake, address, handshake.socketId),
    extensionField: EXTENSION_FIELD.request | (keyMaterial ? EXTENSION_FIELD.key : 0),
    flowWindow,
    type: HANDSHAKE_TYPE.conclusion,
    socketId,
    cookie: handshake.cookie,
  };
  const packet = answer(fields, 4 + RESPONSE_BYTES + (keyMaterial ? 4 + keyMaterial.length : 0));
  const at = HEADER_BYTES + CONTENT_BYTES;
  packet.writeUInt16BE(EXTENSION.response, at);
  packet.writeUInt16BE(RESPONSE_BYTES / 4, at + 2);
  packet.writeUInt32BE(LIBRARY_VERSION, at + 4);
  packet.writeUInt32BE(FLAGS, at + 8);
  packet.writeUInt16BE(latencyMs, at + 12);
  packet.writeUInt16BE(latencyMs, at + 14);
  if (keyMaterial) {
    packet.writeUInt16BE(EXTENSION.keyResponse, at + 16);
    packet.writeUInt16BE(keyMaterial.length / 4, at + 18);
    keyMaterial.copy(packet, at + 20);
  }
  return packet;
}

export const isSupportedVersion = ({ version }: Handshake): boolean => version === VERSION;
export const isPossibleMtu = ({ mtu }: Handshake): boolean => mtu >= MIN_MTU;
