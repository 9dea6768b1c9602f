import { readPesHeader } from "./pes-reader.ts";

const PACKET_BYTES = 188;
const SYNC = 0x47;
const TICKS_PER_SECOND = 90_000;
/** ISO/IEC 13818-1, table 2-22: stream ids of video. */
const isVideo = (id: number) => (id & 0xf0) === 0xe0;

/**
 * When the first part of a transport stream begins to be presented, in seconds: its video, else its audio. Null when no packet
 * states it. Linear in time.
 */
export function firstPresentation(data: Buffer): number | null {
  const earliest = { video: Number.POSITIVE_INFINITY, audio: Number.POSITIVE_INFINITY };
  for (let at = 0; at + PACKET_BYTES <= data.length; at += PACKET_BYTES) {
    // 2.4.3.2: the start of a PES packet, with a payload.
    if (data[at] !== SYNC || !((data[at + 1] as number) & 0x40) || !((data[at + 3] as number) & 0x10)) continue;
    const hasField = ((data[at + 3] as number) & 0x20) !== 0;
    const start = at + 4 + (hasField ? 1 + (data[at + 4] as number) : 0);
    const payload = data.subarray(Math.min(start, at + PACKET_BYTES), at + PACKET_BYTES);
    const times = readPesHeader(payload)?.times;
    if (!times) continue;
    const kind = isVideo(payload[3] as number) ? "video" : "audio";
    earliest[kind] = Math.min(earliest[kind], times.pts / TICKS_PER_SECOND);
  }
  const found = Number.isFinite(earliest.video) ? earliest.video : earliest.audio;
  return Number.isFinite(found) ? found : null;
}
