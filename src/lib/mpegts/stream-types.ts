import type { ConvertibleCodec, LiveVideoCodec } from "#lib/codecs";
import { RejectedMedia, rejectedAudio } from "#lib/publishing";
import {
  AUDIO,
  type AudioFraming,
  CONVERTIBLE,
  count,
  DVB_AUDIO,
  FRAMED_AUDIO,
  first,
  nameIn,
  OTHER_AUDIO,
  OTHER_VIDEO,
  REGISTERED_AUDIO,
  REGISTERED_VIDEO,
  VIDEO,
} from "./stream-kinds.ts";
import type { ElementaryStream } from "./tables.ts";

/** The video codecs that transport streams carry. */
export type TsVideoCodec = Exclude<LiveVideoCodec, "av1">;

export type SelectedStreams = {
  /** Kinds that have other streams too. */
  ignored: ("video" | "audio")[];
  video: { pid: number; codec: TsVideoCodec } | null;
  audio: SelectedAudio | null;
};

/** AAC, or what is converted to it, with the name of its codec for people. */
export type SelectedAudio =
  | { pid: number; codec: AudioFraming }
  | { pid: number; codec: ConvertibleCodec; name: string; stream: ElementaryStream };

/**
 * The first video that can be packaged, and the first AAC, or else the first audio that can be converted to it; other streams are ignored. Throws RejectedMedia when there is
 * only video, or only audio, of other codecs.
 */
export function selectStreams(streams: readonly ElementaryStream[]): SelectedStreams {
  const video = first(streams, VIDEO);
  const audio = first(streams, FRAMED_AUDIO) ?? selectConvertible(streams);
  const otherVideo = video ? null : nameIn(streams, OTHER_VIDEO, REGISTERED_VIDEO);
  if (otherVideo !== null)
    throw new RejectedMedia(`The video codec ${otherVideo} is not supported over SRT. Use H.264 or HEVC.`);
  const otherAudio = audio ? null : nameIn(streams, OTHER_AUDIO, REGISTERED_AUDIO, DVB_AUDIO);
  if (otherAudio !== null) throw rejectedAudio(otherAudio);
  const ignored: SelectedStreams["ignored"] = [];
  if (count(streams, VIDEO, OTHER_VIDEO) > 1) ignored.push("video");
  if (count(streams, AUDIO, OTHER_AUDIO) > 1) ignored.push("audio");
  return { video, audio, ignored };
}

/** The first audio of a codec that can be converted. */
function selectConvertible(streams: readonly ElementaryStream[]): SelectedAudio | null {
  for (const stream of streams) {
    const name = nameIn([stream], OTHER_AUDIO, REGISTERED_AUDIO, DVB_AUDIO);
    const codec = name === null ? undefined : CONVERTIBLE[name];
    if (name !== null && codec) return { pid: stream.pid, codec, name, stream };
  }
  return null;
}
