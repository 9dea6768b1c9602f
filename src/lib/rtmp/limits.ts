import type { ConnectionLimits, PendingLimits, RateLimits } from "#lib/publishing";

/** What one publisher, one address and all of them together may use. Every value can be set, for tests and operators. */
export type RtmpLimits = RateLimits &
  ConnectionLimits &
  PendingLimits & {
    /** Milliseconds from the TCP connection to an accepted publish, handshakes and authorization included. */
    publishTimeoutMs: number;
    /** Milliseconds without an audio or video message after which a publish ends. */
    idleTimeoutMs: number;
    /** Milliseconds that a connection that the server ends has to read the reason. */
    closeTimeoutMs: number;
    /** Bytes of one message before a publish is accepted. */
    commandBytes: number;
    /** Messages before a publish is accepted. OBS and ffmpeg send fewer than ten. */
    commands: number;
    /** Bytes of one audio, video or aggregate message. */
    mediaBytes: number;
    /** Bytes of one message of another type after a publish is accepted. */
    dataBytes: number;
    /** Chunk streams that one connection may use. OBS and ffmpeg use five. */
    chunkStreams: number;
    /** Bytes reserved for messages of one connection that have not arrived completely. */
    bufferedBytes: number;
    /** Bytes of responses that the peer has not read. */
    unreadBytes: number;
  };

export const DEFAULT_LIMITS: Readonly<RtmpLimits> = {
  publishTimeoutMs: 10_000,
  idleTimeoutMs: 30_000,
  closeTimeoutMs: 2000,
  commandBytes: 4096,
  commands: 64,
  mediaBytes: 8 * 1024 * 1024,
  dataBytes: 64 * 1024,
  chunkStreams: 16,
  bufferedBytes: 12 * 1024 * 1024,
  unreadBytes: 64 * 1024,
  maxBitrate: 50_000_000,
  // 60 frames and 47 audio packets are 107.
  maxMessageRate: 5000,
  windowSeconds: 10,
  connections: 1000,
  // Each may have 64 kB of incomplete messages.
  pendingConnections: 512,
  connectionsPerAddress: 16,
};
