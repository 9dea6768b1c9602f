/**
 * What a protocol server reads from a publisher and the packager writes as CMAF. Neither imports the other.
 */

export type LiveVideoCodec = "h264" | "hevc" | "av1";
export type LiveAudioCodec = "aac";

/** The decoder configuration of a track. A publisher sends it before the first sample, and again when it changes. */
export type TrackConfig =
  | {
      kind: "video";
      codec: LiveVideoCodec;
      /** Content of the avcC, hvcC or av1C box (ISO/IEC 14496-15; AV1 in ISOBMFF, 2.3), as the publisher sent it. */
      configuration: Buffer;
    }
  | {
      kind: "audio";
      codec: LiveAudioCodec;
      /** AudioSpecificConfig (ISO/IEC 14496-3, 1.6.2.1). */
      configuration: Buffer;
    };

/** One access unit of video, or one packet of audio. */
export type LiveSample = {
  kind: "video" | "audio";
  /** Decode time in milliseconds, as sent: 32 bits that wrap, may jump, and may begin anywhere. */
  timestamp: number;
  /** Milliseconds from the decode time to the presentation time; 0 for audio. May be negative. */
  compositionOffset: number;
  isKeyframe: boolean;
  /** H.264 and HEVC: NAL units with their lengths in 4 bytes. AV1: OBUs of a temporal unit. AAC: one raw data block. */
  data: Buffer;
};

/** Audio that is encoded as AAC before it is packaged, because not every player decodes it: MPEG audio of any layer, AC-3 of both versions. */
export type ConvertibleCodec = "mpeg" | "ac3" | "opus";

/** Whole frames in a row, of Opus one packet. */
export type ConvertibleAudio = {
  codec: ConvertibleCodec;
  /** The time of the first frame, as in a LiveSample. */
  timestamp: number;
  data: Buffer;
};

/** Why a publisher's stream has ended. Only `disconnected` may be continued by a reconnect. */
export type StreamEnd = "unpublished" | "disconnected" | "stopped";
