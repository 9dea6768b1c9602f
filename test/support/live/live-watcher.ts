import { expect } from "vitest";
import { Gateway } from "#live/ingest/gateway.ts";
import type { FinishedRecording, FromIngest, PublishedChannel } from "#live/ingest/messages.ts";
import { LiveTimeline } from "#live/playlists/timeline.ts";
import { atEnd, emptyFolder } from "../folder.ts";
import { LiveValidator } from "../hls-live-validator.ts";
import { LiveManifestValidator } from "../live-manifest.ts";
import { binaries } from "../media/sources.ts";

const CHANNEL: PublishedChannel = {
  channelId: 1,
  tenantId: 1,
  channel: "stage",
  record: true,
  dvrSeconds: 3600,
  isLowLatency: true,
  captionsLive: [],
  takeover: false,
  reconnectMs: 1000,
  keyId: "key",
  maxStreams: null,
  maxBitrate: null,
  maxRecordedBytes: null,
  isEncoded: false,
};

/** A stream as its viewers see it. */
export type Watched = {
  name: string;
  timeline: LiveTimeline;
  /** Rules that one of its playlists broke, at any time, with the playlist. */
  faults: string[];
  /** The last playlist of each track. */
  playlists: Map<string, string>;
  /** Resolves when the manifests so far are validated. */
  manifests: Promise<void>;
  /** Services of closed captions. */
  captioned: string[];
  finished: FinishedRecording | null | undefined;
  hasEnded: boolean;
};

const MOST_FAULTS = 20;
/** Where no URL is read. */
const MANIFEST_URL = "http://stage.example/live/stage/manifest.mpd";

/**
 * A gateway whose reports are made into playlists and manifests, as a server does. After each report all playlists of the stream are
 * validated as successors of those before, and the manifest after each segment. `requireSpace`: awaited before each write.
 */
export function watchedGateway(
  fields: Partial<PublishedChannel> = {},
  requireSpace: () => Promise<void> = async () => {},
) {
  const folder = emptyFolder();
  const streams: Watched[] = [];
  const log: { message: string; fields: Record<string, string | number> }[] = [];
  const validators = new Map<string, LiveValidator>();
  const manifestValidators = new Map<string, LiveManifestValidator>();

  function validate({ name, timeline, faults, playlists }: Watched): void {
    const texts = new Map<string, string>();
    for (const { init } of timeline.listed()) {
      const text = timeline.mediaPlaylist(init.track)?.text();
      if (text !== undefined) texts.set(init.track, text);
    }
    for (const [track, text] of texts) {
      playlists.set(track, text);
      const key = `${name} ${track}`;
      const validator = validators.get(key) ?? new LiveValidator();
      validators.set(key, validator);
      for (const { rule, message } of validator.see(text))
        if (faults.length < MOST_FAULTS) faults.push(`${track} ${rule}: ${message}`);
    }
  }

  function validateManifest(watched: Watched): void {
    const { name, timeline, faults } = watched;
    const validator = manifestValidators.get(name) ?? new LiveManifestValidator();
    manifestValidators.set(name, validator);
    // Rendered now if it can be; a stream that ends without a segment has none.
    const rendered = timeline.waitForManifest().then(
      (manifest) => manifest.at({ base: MANIFEST_URL, location: MANIFEST_URL }).text,
      () => null,
    );
    watched.manifests = watched.manifests.then(async () => {
      const text = await rendered;
      if (text === null || faults.length >= MOST_FAULTS) return;
      for (const fault of validator.see(text, MANIFEST_URL)) faults.push(`manifest: ${fault}`);
    });
  }

  function receive(message: FromIngest): void {
    if (message.type === "log") log.push(message);
    if (message.type === "opened") {
      const { name, channel, startedAtMs, partTargetSeconds, segmentTargetSeconds, tracks } = message.opened;
      const { dvrSeconds, isLowLatency } = channel;
      const timeline = new LiveTimeline({
        startedAtMs,
        dvrSeconds,
        isLowLatency,
        partTargetSeconds,
        segmentTargetSeconds,
        playlistName: "live.m3u8",
      });
      for (const track of tracks) timeline.init(track);
      streams.push({
        name,
        timeline,
        faults: [],
        playlists: new Map(),
        manifests: Promise.resolve(),
        captioned: [],
        finished: undefined,
        hasEnded: false,
      });
    }
    if (!("stream" in message)) return;
    const watched = streams.find(({ name }) => name === message.stream);
    if (!watched) return;
    const { timeline } = watched;
    if (message.type === "init") timeline.init(message.init);
    if (message.type === "part") timeline.part(message.part);
    if (message.type === "segment") timeline.segment(message.segment);
    if (message.type === "interrupted") timeline.interrupted();
    if (message.type === "resumed") timeline.resumed(message.resumedAtMs);
    if (message.type === "ended") {
      timeline.ended();
      watched.hasEnded = true;
    }
    if (message.type === "finished") watched.finished = message.finished;
    if (message.type === "service") watched.captioned.push(message.service);
    validate(watched);
    if (message.type === "segment" || message.type === "ended") validateManifest(watched);
  }

  const gateway = new Gateway({
    folder,
    requireSpace,
    ffmpeg: async () => binaries.ffmpeg,
    connect: () => {
      throw new Error("There are no targets.");
    },
    ask: async () => ({ accepted: true, channel: { ...CHANNEL, ...fields }, targets: [] }),
    send: receive,
  });
  atEnd(() => gateway.close());
  return { gateway, folder, streams, log };
}

/** The only stream, which has ended, with its recording. */
export function onlyStream(streams: readonly Watched[]): Watched & { finished: FinishedRecording } {
  expect(streams).toHaveLength(1);
  const [stream] = streams as [Watched];
  expect(stream.hasEnded).toBe(true);
  expect(stream.finished).not.toBeNull();
  return stream as Watched & { finished: FinishedRecording };
}
