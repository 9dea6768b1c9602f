import type { LiveVideoCodec } from "#lib/codecs";
import { RejectedMedia } from "#lib/publishing";
import {
  AUDIO,
  type AudioFraming,
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
  audio: { pid: number; codec: AudioFraming } | null;
};

/**
 * The first video and the first audio that can be packaged; other streams are ignored. Throws RejectedMedia when there is
 * only video, or only audio, of other codecs.
 */
export function selectStreams(streams: readonly ElementaryStream[]): SelectedStreams {
  const video = first(streams, VIDEO);
  const audio = first(streams, FRAMED_AUDIO);
  const otherVideo = video ? null : nameIn(streams, OTHER_VIDEO, REGISTERED_VIDEO);
  if (otherVideo !== null)
    throw new RejectedMedia(`The video codec ${otherVideo} is not supported over SRT. Use H.264 or HEVC.`);
  const otherAudio = audio ? null : nameIn(streams, OTHER_AUDIO, REGISTERED_AUDIO, DVB_AUDIO);
  if (otherAudio !== null) throw new RejectedMedia(`The audio codec ${otherAudio} is not supported. Use AAC.`);
  const ignored: SelectedStreams["ignored"] = [];
  if (count(streams, VIDEO, OTHER_VIDEO) > 1) ignored.push("video");
  if (count(streams, AUDIO, OTHER_AUDIO) > 1) ignored.push("audio");
  return { video, audio, ignored };
}
