/** Message types (RTMP 1.0, 5.4, 6.2 and 7.1). Shared objects (16 and 19) are not for publishers and are ignored. */
export const MESSAGE = {
  setChunkSize: 1,
  abort: 2,
  acknowledgement: 3,
  userControl: 4,
  windowAcknowledgementSize: 5,
  setPeerBandwidth: 6,
  audio: 8,
  video: 9,
  dataAmf3: 15,
  commandAmf3: 17,
  data: 18,
  command: 20,
  aggregate: 22,
} as const;

/** Event types of user control messages (7.1.7). */
export const USER_CONTROL = { streamBegin: 0, pingRequest: 6, pingResponse: 7 } as const;

export type RtmpMessage = {
  type: number;
  /** Milliseconds, unsigned 32 bits. */
  timestamp: number;
  /** Message stream: 0 is the connection. */
  streamId: number;
  payload: Buffer;
};

export const isMedia = (type: number) => type === MESSAGE.audio || type === MESSAGE.video || type === MESSAGE.aggregate;

/** The payload of messages 1 to 5: one or more unsigned 32-bit numbers. */
export function uint32s(...values: number[]): Buffer {
  const payload = Buffer.alloc(values.length * 4);
  for (const [index, value] of values.entries()) payload.writeUInt32BE(value >>> 0, index * 4);
  return payload;
}

export function userControl(event: number, data: Buffer): Buffer {
  const payload = Buffer.alloc(2 + data.length);
  payload.writeUInt16BE(event);
  data.copy(payload, 2);
  return payload;
}
