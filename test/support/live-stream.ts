import { eq } from "drizzle-orm";
import { expect, vi } from "vitest";
import { type LiveStream, liveRegistry } from "#features/live/registry.ts";
import { LiveCaptions } from "#live/captions/live-captions.ts";
import { createPackager, type Packager } from "#live/cmaf/packager.ts";
import type { TrackKind } from "#live/cmaf/types.ts";
import { LiveTimeline } from "#live/playlists/timeline.ts";
import type { TimelineOptions } from "#live/playlists/timeline-types.ts";
import { ViewerCount } from "#live/playlists/viewer-count.ts";
import { liveStreams } from "#storage/db/schema.ts";
import type { TestApp } from "./app.ts";
import { emptyFolder } from "./folder.ts";
import { aac, messagesOf, picture, sound, x264 } from "./live/cmaf-publisher.ts";
import type { Message } from "./live/flv-reader.ts";

type Channel = { id: number; tenant_id: number; channel: string };

/** What a publisher sends: H.264 and AAC, a keyframe per second. */
export const streamSource = (seconds: number): Promise<Message[]> =>
  messagesOf(...picture(seconds), ...sound(seconds), ...x264(30), ...aac);

let streams = 0;

/**
 * A stream to a channel that an app in this process serves. The media are real: the packager writes them. Segments have
 * a second and two parts, numbered from 1.
 */
export class TestStream {
  readonly stream: LiveStream;
  /** Bytes of fragments, in order, by the name of the track. */
  readonly fragments = new Map<string, Buffer[]>();
  readonly #app: TestApp;
  readonly #packager: Packager;
  readonly #messages: readonly Message[];
  #sent = 0;

  private constructor(app: TestApp, channel: Channel, messages: readonly Message[], options: Partial<TimelineOptions>) {
    this.#app = app;
    this.#messages = messages;
    const startedAt = app.opened.app.clock.now();
    const timeline = new LiveTimeline({
      startedAtMs: startedAt,
      dvrSeconds: 0,
      isLowLatency: true,
      playlistName: "live.m3u8",
      // A packet of AAC is 21 ms.
      partTargetSeconds: 0.53,
      segmentTargetSeconds: 1,
      ...options,
    });
    this.stream = {
      name: `stream-${++streams}`,
      tenantId: channel.tenant_id,
      channelId: channel.id,
      channel: channel.channel,
      startedAt,
      endedAt: null,
      timeline,
      viewers: new ViewerCount(),
      health: null,
      captions: new LiveCaptions(),
      viewersElsewhere: new Map(),
      folder: emptyFolder(),
    };
    const names = new Map<TrackKind, string>();
    const named = (kind: TrackKind) => names.get(kind) as string;
    this.#packager = createPackager({
      folder: this.stream.folder,
      partSeconds: 0.5,
      targetSegmentSeconds: 1,
      onInit({ name, kind, codec, width, height, channels, sampleRate }) {
        names.set(kind, name);
        const size = { width: width ?? undefined, height: height ?? undefined };
        const audio = { channels: channels ?? undefined, sampleRate: sampleRate ?? undefined };
        timeline.init({ track: name, kind, codec, ...size, ...audio });
      },
      onPart: ({ data, path: _, ...part }) => {
        const track = named(part.track);
        this.fragments.set(track, [...(this.fragments.get(track) ?? []), Buffer.concat(data)]);
        timeline.part({ ...part, track });
      },
      onSegment: ({ name, ...segment }) =>
        timeline.segment({ ...segment, track: named(segment.track), name: name as string }),
    });
  }

  /** The channel is live from now on. */
  static async start(
    app: TestApp,
    channel: Channel,
    { messages, ...options }: Partial<TimelineOptions> & { messages: readonly Message[] },
  ): Promise<TestStream> {
    const testStream = new TestStream(app, channel, messages, options);
    const { name, startedAt } = testStream.stream;
    const row = { tenantId: channel.tenant_id, channelId: channel.id, name, startedAt, recorded: false };
    const times = { createdAt: startedAt, updatedAt: startedAt };
    await app.opened.app.write(async (tx) => void (await tx.insert(liveStreams).values({ ...row, ...times })));
    liveRegistry(app.opened.app).add(testStream.stream);
    return testStream;
  }

  get tracks(): string[] {
    return [...this.fragments.keys()];
  }

  /** Publishes what comes before `seconds` of the source. Resolves when that many whole segments are complete. */
  async publishUntil(seconds: number): Promise<void> {
    for (; this.#sent < this.#messages.length; this.#sent++) {
      const { config, sample } = this.#messages[this.#sent] as Message;
      if (config) this.#packager.config(config);
      else if (sample.timestamp >= seconds * 1000) break;
      else this.#packager.sample({ ...sample });
    }
    await until(() => this.#packager.pendingBytes === 0);
    const last = Math.floor(seconds);
    const { timeline } = this.stream;
    const isComplete = (track: string) => timeline.hasSegment(track, last);
    if (last > 0) await until(() => this.tracks.length === 2 && this.tracks.every(isComplete));
  }

  /** The publisher loses its connection, and is back `ms` after the start of the stream. */
  async reconnect(ms: number): Promise<void> {
    const { timeline } = this.stream;
    await this.#packager.interrupt();
    timeline.interrupted();
    this.#packager.resume();
    timeline.resumed(this.stream.startedAt + ms);
  }

  /** Requests that wait for something. */
  get waiting(): number {
    return this.stream.timeline.facts().waiters;
  }

  /** The publisher has ended the stream. */
  async end(): Promise<void> {
    await this.#packager.end();
    this.stream.timeline.ended();
    const endedAt = this.#app.opened.app.clock.now();
    this.stream.endedAt = endedAt;
    const isThis = eq(liveStreams.name, this.stream.name);
    await this.#app.opened.app.write(async (tx) => void (await tx.update(liveStreams).set({ endedAt }).where(isThis)));
  }
}

export const until = (isTrue: () => boolean): Promise<void> =>
  vi.waitFor(() => expect(isTrue()).toBe(true), { timeout: 30_000, interval: 5 });
