import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { emptyFolder } from "../folder.ts";
import { ffmpeg } from "../media/sources.ts";
import { messagesOf } from "./cmaf-publisher.ts";
import { setsOf, unitsOf } from "./nal-units.ts";

/** A frame or a packet of audio at `ms` of the source. `payloads`: of its RTP packets. */
export type Timed = { ms: number; payloads: Buffer[] };

const MAX_PAYLOAD = 1100;

/** Black video that is white, and silence that has a tone, in the first tenth of each second. */
export const signalVideo = (seconds: number, size = "320x180", rate = 30) => [
  ...["-f", "lavfi", "-i"],
  `color=c=black:s=${size}:r=${rate}:d=${seconds},drawbox=c=white:t=fill:enable='lt(mod(t,1),0.1)'`,
];
export const signalAudio = (seconds: number) => [
  ...[
    "-f",
    "lavfi",
    "-i",
    `aevalsrc='0.5*sin(880*2*PI*t)*lt(mod(t,1),0.1)':s=48000:d=${seconds},aformat=channel_layouts=stereo`,
  ],
];

/** H.264 without B-frames, as RTP payloads, with a keyframe every `gop` frames. */
export async function videoOf(input: readonly string[], gop = 30): Promise<Timed[]> {
  const x264 = [
    "-c:v",
    "libx264",
    "-preset",
    "ultrafast",
    "-tune",
    "zerolatency",
    "-pix_fmt",
    "yuv420p",
    "-g",
    `${gop}`,
  ];
  const messages = await messagesOf(...input, ...x264, "-an");
  let sets: Buffer[] = [];
  return messages.flatMap(({ config, sample }): Timed[] => {
    if (config) sets = setsOf(config.configuration);
    if (!sample) return [];
    const units = [...(sample.isKeyframe ? sets : []), ...unitsOf(sample.data)];
    return [{ ms: sample.timestamp, payloads: units.flatMap(payloadsOf) }];
  });
}

/** A single NAL unit, or fragments (RFC 6184, 5.8). */
function payloadsOf(unit: Buffer): Buffer[] {
  if (unit.length <= MAX_PAYLOAD) return [unit];
  const [header] = unit as unknown as [number];
  const payloads: Buffer[] = [];
  for (let at = 1; at < unit.length; at += MAX_PAYLOAD) {
    const isEnd = at + MAX_PAYLOAD >= unit.length;
    const flags = (at === 1 ? 0x80 : 0) | (isEnd ? 0x40 : 0);
    const head = Buffer.of((header & 0xe0) | 28, flags | (header & 0x1f));
    payloads.push(Buffer.concat([head, unit.subarray(at, at + MAX_PAYLOAD)]));
  }
  return payloads;
}

/** Opus in packets of 20 ms. */
export async function audioOf(input: readonly string[]): Promise<Timed[]> {
  const path = join(emptyFolder(), "source.ogg");
  await ffmpeg(...input, "-c:a", "libopus", "-b:a", "64k", "-page_duration", "20000", "-vn", path);
  const packets = packetsOf(await readFile(path));
  // OpusHead and OpusTags.
  return packets.slice(2).map((packet, index) => ({ ms: 20 * index, payloads: [packet] }));
}

/** Packets of an Ogg file (RFC 3533). */
export function packetsOf(file: Buffer): Buffer[] {
  const packets: Buffer[] = [];
  let open: Buffer[] = [];
  for (let at = 0; at < file.length; ) {
    const segments = [...file.subarray(at + 27, at + 27 + (file[at + 26] as number))];
    at += 27 + segments.length;
    for (const length of segments) {
      open.push(file.subarray(at, at + length));
      at += length;
      if (length === 255) continue;
      packets.push(Buffer.concat(open));
      open = [];
    }
  }
  return packets;
}
