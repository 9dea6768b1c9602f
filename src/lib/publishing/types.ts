import type { ConvertibleAudio, LiveSample, StreamEnd, TrackConfig } from "#lib/codecs";

/** Who wants to publish what. `name` and `query` are as sent: not decoded, not checked. */
export type PublishRequest = {
  /** First part of the path, without slashes at its ends and without a query. */
  app: string;
  /** Stream name (of the stream key) without its query. Not empty. */
  name: string;
  /** The query of the stream name; parameters that it lacks are of the query of the URL. */
  query: URLSearchParams;
  /** IP address of the peer. */
  address: string;
  /** The publisher's name of itself: in RTMP `flashVer` of the connect command. Empty when it does not send one. */
  encoder: string;
};

/**
 * `refused`: unknown channel or wrong key. `taken`: another publisher is active. `limit`: the plan allows no more streams.
 * `throttled`: too many wrong keys. `unavailable`: try again later.
 */
export type RefusalReason = "refused" | "taken" | "limit" | "throttled" | "unavailable";

export type PublishDecision =
  | { accepted: true; sink: PublishSink; limits?: { maxBitrate?: number } }
  | { accepted: false; reason: RefusalReason };

/**
 * What is wrong with a stream that continues. `track_ignored`: it has a second track of a kind. `configuration_missing`: a track
 * without a decoder configuration, which is not played. `video_missing`: video has paused for over a minute.
 */
export type PublishWarning = {
  code: "track_ignored" | "configuration_missing" | "video_missing";
  /** For people: what is wrong, and what to do. */
  message: string;
};

/** Values of onMetaData (FLV 10.1, E.5). Nested values are omitted. */
export type StreamMetadata = Record<string, number | string | boolean>;

/**
 * Receives an accepted stream. Calls are synchronous and in the order of the stream. An exception ends the stream as
 * `stopped`.
 */
export type PublishSink = {
  /** Called once, before all others, unless the publisher has disconnected meanwhile. */
  onStart?(stream: PublishedStream): void;
  /** Called for the first configuration of a track, and for each that differs from the last one. */
  onConfig(config: TrackConfig): void;
  /** Called after the configuration of its track. `timestamp` is that of the publisher: unsigned 32-bit milliseconds. */
  onSample(sample: LiveSample): void;
  /** Audio of a codec that is not packaged. A sink without it takes none: the stream is rejected. */
  onConvertible?(audio: ConvertibleAudio): void;
  onMetadata(metadata: StreamMetadata): void;
  /** The publisher announces the kinds of tracks that it sends: all of them, each time. Their configurations may follow later. */
  onTracks?(kinds: readonly TrackConfig["kind"][]): void;
  /** May be called again with the same warning. */
  onWarning?(warning: PublishWarning): void;
  /** Called exactly once, and last. */
  onEnd(end: StreamEnd): void;
};

export type PublishedStream = {
  /**
   * Ends the stream: sends `description` to the publisher, where the protocol can, and closes the connection. The sink receives `stopped` before
   * this returns. Does nothing for a stream that has ended.
   */
  stop(description: string): void;
};

export type LogLevel = "info" | "warn" | "error";
/** Stream keys are never logged. Strings in `fields` may come from the peer, and are short. */
export type Log = (level: LogLevel, message: string, fields: Record<string, string | number>) => void;
