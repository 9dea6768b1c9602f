import type { DemuxerLimits } from "#lib/mpegts";
import type { ConnectionLimits, PendingLimits, RateLimits } from "#lib/publishing";
import type { HandshakeLimits } from "./handshake-rate.ts";

/** What one publisher, one address and all of them together may use. `maxMessageRate` counts packets. */
export type SrtLimits = RateLimits &
  ConnectionLimits &
  PendingLimits &
  HandshakeLimits &
  DemuxerLimits & {
    /** Milliseconds from the handshake to an accepted publish. */
    publishTimeoutMs: number;
    /** Milliseconds without a packet after which a connection is broken, as the SRT library has it. */
    peerTimeoutMs: number;
    /** Milliseconds without a packet after which a shutdown means that the network was interrupted. */
    silenceMs: number;
    /** Milliseconds without audio or video after which a publish ends. */
    idleTimeoutMs: number;
    /** Milliseconds for which a refusal is repeated to a caller that repeats its handshake. */
    closeTimeoutMs: number;
    /** Packets of one connection that wait for a lost one, a power of 2. Each has at most 1,500 bytes. */
    bufferedPackets: number;
    /** Milliseconds that a lost packet is waited for, if the publisher wants no more. */
    minLatencyMs: number;
    maxLatencyMs: number;
  };

export const DEFAULT_LIMITS: Readonly<SrtLimits> = {
  publishTimeoutMs: 10_000,
  peerTimeoutMs: 5000,
  silenceMs: 4000,
  idleTimeoutMs: 30_000,
  closeTimeoutMs: 2000,
  // 1.7 s of 50 Mbit/s, 14 s of 6 Mbit/s.
  bufferedPackets: 8192,
  // Packets are not delayed unless one is lost, so it can be more than the 120 ms that libraries have as a default.
  minLatencyMs: 500,
  maxLatencyMs: 10_000,
  maxBitrate: 50_000_000,
  // 50 Mbit/s in packets of 1,316 bytes are 4,750.
  maxMessageRate: 20_000,
  windowSeconds: 10,
  connections: 1000,
  pendingConnections: 512,
  connectionsPerAddress: 16,
  inductionsPerSecond: 5000,
  handshakesPerAddress: 120,
  moreHandshakesPerSecond: 20,
  // With a passphrase each derives a key, which takes about a millisecond.
  handshakesPerSecond: 400,
  videoBytes: 8 * 1024 * 1024,
  audioBytes: 256 * 1024,
  garbageBytes: 256 * 1024,
};
