import type { ConnectionLimits, RateLimits } from "#lib/publishing";

/** What one publisher, one address and all of them together may use. `maxMessageRate` counts packets. */
export type WhipLimits = RateLimits &
  ConnectionLimits & {
    /** Milliseconds from the offer to the end of the DTLS handshake. */
    connectTimeoutMs: number;
    /** Milliseconds without a packet after which a connection is broken. Browsers check it every 2.5 s. */
    peerTimeoutMs: number;
    /** Milliseconds without audio or video after which a publish ends. */
    idleTimeoutMs: number;
    /** Source addresses that one session may use: a client has one for each of its networks. */
    paths: number;
    /** Packets of the handshake of one session. */
    handshakePackets: number;
    /** Synchronization sources of one session: audio, and the layers of video. */
    sources: number;
    /** TCP connections without a valid connectivity check at once, and offers without a connection. One more closes the oldest. */
    pendingConnections: number;
    /** Bytes of a frame of video. */
    frameBytes: number;
    /** Milliseconds that a lost packet is waited for, if the publisher sends it again. */
    lossDelayMs: number;
    /** The same if it does not: it may only have been overtaken. */
    reorderDelayMs: number;
    /** Milliseconds for which media waits for the sender reports of all tracks, which say how they relate. */
    reportTimeoutMs: number;
    /** Milliseconds between the keyframes that are requested. */
    keyframeMs: number;
  };

/** For the jitter buffer of a track. */
export const bufferOptions = ({ lossDelayMs, reorderDelayMs }: WhipLimits, hasNack: boolean) => ({
  delayMs: hasNack ? lossDelayMs : reorderDelayMs,
  canRequest: hasNack,
});

export const DEFAULT_LIMITS: Readonly<WhipLimits> = {
  connectTimeoutMs: 15_000,
  peerTimeoutMs: 8000,
  idleTimeoutMs: 30_000,
  paths: 16,
  handshakePackets: 500,
  sources: 8,
  pendingConnections: 256,
  frameBytes: 8 * 1024 * 1024,
  lossDelayMs: 600,
  reorderDelayMs: 100,
  // Chromium sends the first report of audio after 2.5 s.
  reportTimeoutMs: 3000,
  keyframeMs: 2000,
  maxBitrate: 50_000_000,
  // 50 Mbit/s in packets of 1,200 bytes are 5,200.
  maxMessageRate: 20_000,
  windowSeconds: 10,
  connections: 1000,
  connectionsPerAddress: 16,
};
