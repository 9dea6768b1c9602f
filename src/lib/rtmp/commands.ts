import { type AmfObject, type AmfValue, amfObject, decodeAmf0, encodeAmf0 } from "./amf0.ts";
import { RtmpFault } from "./fault.ts";
import { FOURCC } from "./flv-fourcc.ts";
import { MESSAGE, type RtmpMessage } from "./messages.ts";

/** A call of NetConnection or NetStream (RTMP 1.0, 7.2). */
export type Command = {
  name: string;
  /** 0 for a call that expects no response. */
  transactionId: number;
  /** Empty when it is null or of another type. */
  object: AmfObject;
  /** What follows the command object. */
  arguments: AmfValue[];
};

/** The AMF 0 values of a command or data message. Types 15 and 17 prefix a byte and may switch to AMF 3, which throws. */
export function valuesOf({ type, payload }: RtmpMessage): AmfValue[] {
  const isPrefixed = type === MESSAGE.commandAmf3 || type === MESSAGE.dataAmf3;
  // Some publishers omit the prefix. A string begins with another byte, and every message begins with a string.
  return decodeAmf0(isPrefixed && payload[0] === 0 ? payload.subarray(1) : payload);
}

/** Throws RtmpFault when the message is no command. */
export function readCommand(message: RtmpMessage): Command {
  const [name, transactionId, object, ...rest] = valuesOf(message);
  if (typeof name !== "string") throw new RtmpFault("A command has no name.");
  return {
    name,
    transactionId: typeof transactionId === "number" ? transactionId : 0,
    object: object instanceof Map ? object : new Map(),
    arguments: rest,
  };
}

/** Capability bits of Enhanced RTMP 2, "Enhancing NetConnection connect Command". */
const CAPS_EX_MOD_EX = 4;
const CAN_FORWARD = 4;

/**
 * Response to connect. The Enhanced RTMP fields let an encoder offer HEVC and AV1. `objectEncoding` 0: AMF 0, also for
 * peers that ask for AMF 3.
 */
export function connectResult(transactionId: number): Buffer {
  const forward = (codes: readonly string[]) => amfObject(Object.fromEntries(codes.map((code) => [code, CAN_FORWARD])));
  const server = amfObject({
    fmsVer: "FMS/3,5,7,7009",
    capabilities: 31,
    fourCcList: [...FOURCC.video, ...FOURCC.audio],
    videoFourCcInfoMap: forward(FOURCC.video),
    audioFourCcInfoMap: forward(FOURCC.audio),
    capsEx: CAPS_EX_MOD_EX,
  });
  const success = status("status", "NetConnection.Connect.Success", "Connected.");
  return encodeAmf0("_result", transactionId, server, success.set("objectEncoding", 0));
}

export const callResult = (transactionId: number, value: AmfValue): Buffer =>
  encodeAmf0("_result", transactionId, null, value);

export type StatusLevel = "status" | "error";

export const onStatus = (level: StatusLevel, code: string, description: string): Buffer =>
  encodeAmf0("onStatus", 0, null, status(level, code, description));

const status = (level: StatusLevel, code: string, description: string) => amfObject({ level, code, description });
