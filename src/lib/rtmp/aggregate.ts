import { RtmpFault } from "./fault.ts";
import { MESSAGE, type RtmpMessage } from "./messages.ts";

/** An FLV tag header and the size of the tag after its data (FLV 10.1, E.3). */
const HEADER_BYTES = 11;
const BACK_POINTER_BYTES = 4;

/**
 * The messages of an aggregate message (RTMP 1.0, 7.1.6): FLV tags whose times are relative to the first one. Only
 * audio, video and data may be inside. Throws RtmpFault when a tag is truncated.
 */
export function* splitAggregate({ payload, timestamp, streamId }: RtmpMessage): Generator<RtmpMessage> {
  let first: number | null = null;
  let at = 0;
  while (at < payload.length) {
    if (at + HEADER_BYTES > payload.length) throw new RtmpFault("An aggregate message is truncated.");
    const type = payload[at] as number;
    const end = at + HEADER_BYTES + payload.readUIntBE(at + 1, 3);
    if (end > payload.length) throw new RtmpFault("An aggregate message is truncated.");
    // 24 low bits, then the 8 high bits.
    const time = payload.readUIntBE(at + 4, 3) + (payload[at + 7] as number) * 2 ** 24;
    first ??= time;
    if (type === MESSAGE.audio || type === MESSAGE.video || type === MESSAGE.data)
      yield {
        type,
        timestamp: (timestamp + time - first) >>> 0,
        streamId,
        payload: payload.subarray(at + HEADER_BYTES, end),
      };
    at = end + BACK_POINTER_BYTES;
  }
}
