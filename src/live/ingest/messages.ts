import type { ShownCaption } from "#lib/closed-captions";
import type { LogLevel, RefusalReason } from "#lib/publishing";
import type { KeyPair } from "#lib/rtmp";
import type { Packaged } from "#media/manifests.ts";
import type { RecordedCaptions } from "../captions/written-captions.ts";
import type { InitEvent, PartEvent, SegmentEvent } from "../playlists/events.ts";
import type { SimulcastReport, SimulcastTarget } from "../simulcast/messages.ts";
import type { WhipAnswer, WhipRequest } from "../whip/messages.ts";
import type { StreamHealth } from "./stream-health.ts";

/**
 * Messages between the ingest process and the server that started it. They pass the IPC channel as JSON, in order. A
 * stream is identified by its name.
 */

/** Null: not served. 0, in options: a free port. */
export type IngestPorts = {
  rtmpPort: number | null;
  rtmpsPort: number | null;
  srtPort: number | null;
  whipPort: number | null;
};

export type IngestOptions = IngestPorts & {
  /** Directory of the streams, each in a directory of its own. */
  folder: string;
  host: string;
  /** That SRT publishers have to encrypt with; null: they may not encrypt. */
  srtPassphrase: string | null;
  /** Addresses in the answers to WHIP publishers; empty: those of this machine. */
  whipAddresses: string[];
  /** The setting of the program that encodes the audio of WHIP; null: the bundled one. */
  ffmpeg: string | null;
  /** For RTMPS. */
  tls: { key: string; cert: string } | null;
  /** Recordings end when less is free on the disk. */
  minFreeBytes: number;
  connectionsPerAddress: number;
  /** Ranges that simulcast targets may be in although they are not public. */
  allowCidrs: string[];
};

/** A publish, as the publisher sent it. `query` contains the stream key and is never logged. */
export type PublishQuestion = { app: string; name: string; query: string; address: string };

/** What an authorized publisher publishes to. */
export type PublishedChannel = {
  channelId: number;
  tenantId: number;
  channel: string;
  record: boolean;
  dvrSeconds: number;
  isLowLatency: boolean;
  /** Languages in which its speech is recognized while it runs. */
  captionsLive: string[];
  /** A second publisher replaces the first one. */
  takeover: boolean;
  /** How long a stream waits for a publisher whose connection broke. */
  reconnectMs: number;
  /** Changes with the stream key. */
  keyId: string;
  /** Streams of the tenant that this process may receive at once; null without a limit. */
  maxStreams: number | null;
  /** Bits per second that a publisher may send; null: the limit of the server. */
  maxBitrate: number | null;
  /** Bytes that a recording may have; null without a limit. */
  maxRecordedBytes: number | null;
  /** The recording is encoded when the stream has ended. */
  isEncoded: boolean;
};

export type Permission =
  | { accepted: true; channel: PublishedChannel; targets: SimulcastTarget[] }
  | { accepted: false; reason: RefusalReason };

/** A stream has its first part. Its files are in the directory with its name. */
export type OpenedStream = {
  name: string;
  channel: PublishedChannel;
  /** Time of day of the start of the media timeline, ms since the epoch. */
  startedAtMs: number;
  partTargetSeconds: number;
  segmentTargetSeconds: number;
  tracks: InitEvent[];
};

/** The media of a stream that has ended, with the manifests of video on demand. `files` are relative to its directory. */
export type FinishedRecording = Packaged & {
  width: number | null;
  height: number | null;
  frameRate: number | null;
  manifest: string;
  dashManifest: string;
  /** All tracks in one file, for encoding; null when it is not needed. Relative to the directory; not one of `files`. */
  source: { path: string; bytes: number } | null;
  /** WebVTT of the captions that the publisher sent, by service. */
  captions: RecordedCaptions[];
};

/** A part of a running stream, in seconds from its start, or the last ones. */
export type WantedClip = { startSeconds: number; endSeconds: number } | { lastSeconds: number };

export type FromIngest =
  | { type: "ready"; ports: IngestPorts }
  /** It cannot listen, and exits. */
  | { type: "failed"; reason: string }
  /** A question that the answer with the same number answers. */
  | { type: "question"; number: number; publish: PublishQuestion }
  | { type: "opened"; opened: OpenedStream }
  /** A track that begins later. */
  | { type: "init"; stream: string; init: InitEvent }
  | { type: "part"; stream: string; part: PartEvent }
  | { type: "segment"; stream: string; segment: SegmentEvent }
  /** Its publisher sends captions of this service; before the first of them. */
  | { type: "service"; stream: string; service: string; language?: string }
  /** Before the segment in which it is shown. */
  | { type: "caption"; stream: string; caption: ShownCaption }
  | { type: "interrupted"; stream: string }
  | { type: "resumed"; stream: string; resumedAtMs: number }
  /** Every two seconds while there is a publisher. */
  | { type: "health"; stream: string; health: StreamHealth }
  | { type: "ended"; stream: string; endedAtMs: number }
  /** Comes after `ended`, or answers `recover`. Null: there is no media. */
  | { type: "finished"; stream: string; finished: FinishedRecording | null }
  /**
   * Answers `clip`: the files are in the directory with its name. Null: there is no complete segment of that time. It
   * failed when it is absent.
   */
  | { type: "clip"; clip: string; made?: FinishedRecording | null }
  /** Every two seconds while a channel with targets is on air, and after each change. */
  | { type: "simulcast"; report: SimulcastReport }
  /** Answers the request with the same number. */
  | { type: "whip"; number: number; answer: WhipAnswer }
  | { type: "log"; level: LogLevel; message: string; fields: Record<string, string | number> };

/** The messages of one type, or of several. */
export type FromIngestOf<Type extends FromIngest["type"]> = Extract<FromIngest, { type: Type }>;
export type ToIngestOf<Type extends ToIngest["type"]> = Extract<ToIngest, { type: Type }>;

export type ToIngest =
  | { type: "options"; options: IngestOptions }
  /** Answers the question with the same number. */
  | { type: "answer"; number: number; permission: Permission }
  /** The targets of a channel that is on air have changed. */
  | { type: "targets"; channelId: number; targets: SimulcastTarget[] }
  /** Ends a stream; `reason` is sent to its publisher. */
  | { type: "stop"; stream: string; reason: string }
  /** All speech of a stream that has ended is in its captions: its recording may be completed. */
  | { type: "spoken"; stream: string }
  /** Copies a part of a running stream to a directory named by `clip`. */
  | { type: "clip"; clip: string; stream: string; wanted: WantedClip }
  /** Completes the files of a stream that another process left, in the directory `from`. */
  | { type: "recover"; stream: string; from: string; isEncoded: boolean }
  /** An HTTP request of a WHIP publisher. */
  | { type: "whip"; number: number; request: WhipRequest }
  | { type: "tls"; tls: { [Part in keyof KeyPair]: string } }
  /** Ends all streams and exits. */
  | { type: "shutdown" };
