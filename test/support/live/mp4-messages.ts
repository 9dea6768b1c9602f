import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { readDefaults, readSamples } from "#media/clip/fragments.ts";
import type { LiveSample, LiveVideoCodec, TrackConfig } from "#src/lib/codecs/samples.ts";
import { boxes, find } from "#src/lib/isobmff/boxes.ts";
import { isSync } from "#src/lib/isobmff/track-fragment.ts";
import { emptyFolder } from "../folder.ts";
import { ffmpeg } from "../media/sources.ts";
import type { Message } from "./flv-reader.ts";

const MUXED = ["-f", "mp4", "-movflags", "frag_keyframe+delay_moov+default_base_moof"];
const BOXES: Record<LiveVideoCodec, string> = { h264: "avcC", hevc: "hvcC", av1: "av1C" };

/** The messages that a publisher of enhanced RTMP sends, from an MP4 file: ffmpeg 5.1 writes no FLV with these codecs. */
export async function messagesOfMp4(codec: LiveVideoCodec, ...args: string[]): Promise<Message[]> {
  const path = join(emptyFolder(), "source.mp4");
  await ffmpeg(...args, ...MUXED, path);
  const data = await readFile(path);
  const media = ["moov", "trak", "mdia"];
  const stsd = find(data, [...media, "minf", "stbl", "stsd"]);
  const entry = stsd && boxes(data, stsd.start + 8, stsd.end).next().value;
  const box = entry && boxes(data, entry.start + 78, entry.end).find(({ type }) => type === BOXES[codec]);
  const mdhd = find(data, [...media, "mdhd"]);
  if (!box || !mdhd) throw new Error(`ffmpeg wrote no ${BOXES[codec]}`);
  const timescale = data.readUInt32BE(mdhd.start + 12);
  const toMs = (time: number) => Math.round((time * 1000) / timescale);
  const config: TrackConfig = { kind: "video", codec, configuration: Buffer.from(data.subarray(box.start, box.end)) };
  const samples = readSamples(data, readDefaults(data)).map((sample): LiveSample => {
    const compositionOffset = toMs(sample.cts) - toMs(sample.dts);
    return {
      kind: "video",
      timestamp: toMs(sample.dts),
      compositionOffset,
      isKeyframe: isSync(sample),
      data: sample.data,
    };
  });
  return [{ config }, ...samples.map((sample) => ({ sample }))];
}
