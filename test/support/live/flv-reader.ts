import type { LiveSample, TrackConfig } from "#src/lib/codecs/samples.ts";

export type Message = { config: TrackConfig; sample?: never } | { sample: LiveSample; config?: never };

const AUDIO = 8;
const VIDEO = 9;
const AVC = 7;
const AAC = 10;

/** The messages of an FLV file with H.264 and AAC (Adobe Flash Video File Format Specification 10.1, Annex E). */
export function readFlv(data: Buffer): Message[] {
  const messages: Message[] = [];
  for (let at = data.readUInt32BE(5) + 4; at + 11 <= data.length; ) {
    const type = data.readUInt8(at);
    const size = data.readUIntBE(at + 1, 3);
    const timestamp = data.readUIntBE(at + 4, 3) + data.readUInt8(at + 7) * 2 ** 24;
    const body = data.subarray(at + 11, at + 11 + size);
    at += 11 + size + 4;
    if (type === VIDEO && ((body[0] as number) & 15) === AVC) messages.push(...video(body, timestamp));
    if (type === AUDIO && (body[0] as number) >> 4 === AAC) {
      const content = body.subarray(2);
      if (body[1] === 0) messages.push({ config: { kind: "audio", codec: "aac", configuration: content } });
      else
        messages.push({ sample: { kind: "audio", timestamp, compositionOffset: 0, isKeyframe: true, data: content } });
    }
  }
  return messages;
}

function video(body: Buffer, timestamp: number): Message[] {
  const content = body.subarray(5);
  if (body[1] === 0) return [{ config: { kind: "video", codec: "h264", configuration: content } }];
  if (body[1] !== 1) return [];
  const isKeyframe = (body[0] as number) >> 4 === 1;
  const compositionOffset = body.readIntBE(2, 3);
  return [{ sample: { kind: "video", timestamp, compositionOffset, isKeyframe, data: content } }];
}
