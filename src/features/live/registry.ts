import { forApp } from "#app.ts";
import type { LiveCaptions } from "#live/captions/live-captions.ts";
import type { StreamHealth } from "#live/ingest/stream-health.ts";
import type { LiveTimeline } from "#live/playlists/timeline.ts";
import type { ViewerCount } from "#live/playlists/viewer-count.ts";

/** File name of a media playlist in the directory of its track. */
export const LIVE_PLAYLIST = "live.m3u8";

/** A stream that this server receives, as its processes serve it. */
export type LiveStream = {
  /** Unique among all streams. Part of the URLs of its files, so that these never change. */
  name: string;
  tenantId: number;
  channelId: number;
  channel: string;
  /** Ms since the epoch. */
  startedAt: number;
  /** Null while it runs. */
  endedAt: number | null;
  timeline: LiveTimeline;
  captions: LiveCaptions;
  viewers: ViewerCount;
  /** The viewers of other processes of the server, by their slots, with the time of the report. */
  viewersElsewhere: Map<number, { count: number; at: number }>;
  /** What the publisher sends; null before it is measured, and while the publisher is away. */
  health: StreamHealth | null;
  /** Directory of its tracks: `<track>/init.mp4`, `<track>/00001.m4s`. See `openSegment` for a segment that is open. */
  folder: string;
};

/** A process that has reported nothing for so long has exited. */
const REPORTED_MS = 15_000;

/** Viewers of all processes of this server. */
export const viewersOf = ({ viewers, viewersElsewhere }: LiveStream, now: number): number =>
  [...viewersElsewhere.values()].reduce(
    (sum, { count, at }) => sum + (now - at < REPORTED_MS ? count : 0),
    viewers.count(now),
  );

/** The streams of this server: the running one of each channel, or the last one while its files exist. */
export class LiveRegistry {
  readonly #byChannel = new Map<string, LiveStream>();
  readonly #byName = new Map<string, LiveStream>();

  add(stream: LiveStream): void {
    this.#byChannel.set(stream.channel, stream);
    this.#byName.set(stream.name, stream);
  }

  remove(stream: LiveStream): void {
    this.#byName.delete(stream.name);
    if (this.#byChannel.get(stream.channel) === stream) this.#byChannel.delete(stream.channel);
  }

  /** The running stream of a channel, or the last one while its files exist. */
  ofChannel(channel: string): LiveStream | undefined {
    return this.#byChannel.get(channel);
  }

  /** The running stream of a channel. */
  running(channel: string): LiveStream | undefined {
    const stream = this.#byChannel.get(channel);
    return stream?.endedAt === null ? stream : undefined;
  }

  byName(name: string): LiveStream | undefined {
    return this.#byName.get(name);
  }

  all(): Iterable<LiveStream> {
    return this.#byName.values();
  }
}

export const liveRegistry = forApp(() => new LiveRegistry());
