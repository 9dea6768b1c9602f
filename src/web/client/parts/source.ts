import Hls, { type HlsConfig, type Level } from "hls.js";
import type { AudioTrack } from "./audio-tracks.ts";
import { avoidAwaitedRenditions } from "./awaited-rendition.ts";
import { type CmcdSession, cmcdLoader } from "./cmcd.ts";
import { endAtTail } from "./live-tail.ts";
import { carrying, type ErrorCode, refusedFor } from "./player-data.ts";
import type { Rendition } from "./renditions.ts";
import { keepStereoLevels } from "./stereo-levels.ts";

/** Before playback a page loads one segment, not half a minute. */
const BUFFER_UNTIL_PLAY_SECONDS = 1;
/** In Safari, which does not say how far from the newest media it plays. */
const NATIVE_EDGE_SECONDS = 10;
/**
 * hls.js plays up to this fast to catch up after a stall: with parts of half a second the 95th percentile of the latency is
 * 1.6 s, and 3.3 s without it. What was played is loaded again when a viewer goes back further than the buffer.
 */
const LIVE: Partial<HlsConfig> = { maxLiveSyncPlaybackRate: 1.5, liveDurationInfinity: true, backBufferLength: 30 };
/** A live stream may have more media errors than a video, but not at once. */
const MAX_RECOVERIES = 2;
const RECOVERED_AFTER_MS = 60_000;
const HLS_TYPE = "application/vnd.apple.mpegurl";

export type SourceOptions = {
  url: string;
  /** It was loaded with the page's token, and lists the subtitles that the page has anyway. */
  isOwn: boolean;
  token: string | null;
  /** What requests for media say about the playback; null: nothing. */
  cmcd: CmcdSession | null;
  startSeconds: number;
  /** Buffer ahead before playback starts. */
  isEager: boolean;
  isLive: boolean;
  onRenditions(renditions: Rendition[]): void;
  onAudioTracks(tracks: AudioTrack[], chosen: number): void;
  onRenditionChange(): void;
  onError(reason: ErrorCode): void;
};
export type Source = {
  chooseRendition(index: number): void;
  chooseAudio(index: number): void;
  /** Uses a new token for all later requests without interrupting playback. False when that is not possible. */
  renewToken(token: string): boolean;
  /** Null when it is not live, or not any more. */
  liveEdge(): LiveEdge | null;
  close(): void;
};
/** Positions in seconds. */
export type LiveEdge = {
  /** Where a viewer who wants to see the newest media plays. */
  newest: number;
  /** From here on the viewer is live, not behind. */
  start: number;
};

/**
 * hls.js with Media Source Extensions. Native HLS without them, and in Safari, where it saves battery and supports
 * AirPlay; not Chromium's native HLS, which offers no choice of quality.
 */
export const isNative = (video: HTMLVideoElement) =>
  video.canPlayType(HLS_TYPE) !== "" && (!Hls.isSupported() || /^Apple/.test(navigator.vendor));

export function openSource(video: HTMLVideoElement, options: SourceOptions): Source {
  if (isNative(video)) return openNative(video, options);
  if (Hls.isSupported()) return openHls(video, options);
  options.onError("media");
  return { chooseRendition() {}, chooseAudio() {}, renewToken: () => false, liveEdge: () => null, close() {} };
}

function openNative(video: HTMLVideoElement, { url, token, startSeconds, onError }: SourceOptions): Source {
  const stop = new AbortController();
  const on = (name: string, act: () => void) => video.addEventListener(name, act, { signal: stop.signal });
  if (startSeconds > 0)
    on("loadedmetadata", () => {
      if (video.currentTime < startSeconds) video.currentTime = startSeconds;
    });
  on("error", () => {
    const refused = token === null ? null : refusedFor(token);
    const isNetwork = video.error?.code === MediaError.MEDIA_ERR_NETWORK;
    onError(refused === "playback_token_expired" ? refused : isNetwork ? "network" : "media");
  });
  video.src = url;
  return {
    chooseRendition() {},
    chooseAudio() {},
    // Requests of the browser itself cannot be changed; the source must be reloaded.
    renewToken: () => false,
    liveEdge() {
      const { duration, seekable } = video;
      if (duration !== Number.POSITIVE_INFINITY || seekable.length === 0) return null;
      const newest = seekable.end(seekable.length - 1);
      return { newest, start: newest - NATIVE_EDGE_SECONDS };
    },
    close() {
      stop.abort();
      video.removeAttribute("src");
      video.load();
    },
  };
}

const isSameSize = (a: Level, b: Level) => a.width === b.width && a.height === b.height;

function openHls(video: HTMLVideoElement, options: SourceOptions): Source {
  const { url, isOwn, cmcd, startSeconds, isEager, isLive, onRenditions, onAudioTracks, onRenditionChange, onError } =
    options;
  let { token } = options;
  const withToken = (address: string) => (isOwn && token !== null ? carrying(address, token) : address);
  const withoutSubtitles = { subtitleTrackController: undefined } as unknown as Partial<HlsConfig>;
  const hls: Hls = new Hls({
    ...(cmcd && { fLoader: cmcdLoader(video, () => hls, cmcd) }),
    ...(isOwn && withoutSubtitles),
    ...(isLive && LIVE),
    capLevelToPlayerSize: true,
    // Playlists contain the token with which they were fetched.
    xhrSetup(request, address) {
      const renewed = withToken(address);
      if (renewed !== address) request.open("GET", renewed);
    },
    ...(startSeconds > 0 && { startPosition: startSeconds }),
  });
  const stop = new AbortController();
  const full = { length: hls.config.maxBufferLength, most: hls.config.maxMaxBufferLength };
  if (!isEager && video.paused) {
    hls.config.maxBufferLength = hls.config.maxMaxBufferLength = BUFFER_UNTIL_PLAY_SECONDS;
    const unbound = () => {
      hls.config.maxBufferLength = full.length;
      hls.config.maxMaxBufferLength = full.most;
    };
    video.addEventListener("play", unbound, { once: true, signal: stop.signal });
  }
  let recoveries = 0;
  let recoveredAt = 0;
  hls.on(Hls.Events.ERROR, (_, error) => {
    // hls.js tries other renditions after a 403, which does not help with the token they share.
    const isRefused = error.response?.code === 403;
    if (!error.fatal && !isRefused) return;
    const requestUrl = (error.networkDetails as XMLHttpRequest | undefined)?.responseURL ?? "";
    if (isRefused && requestUrl !== withToken(requestUrl)) {
      // The request was in progress when the new token arrived.
      hls.startLoad();
      return;
    }
    if (isLive && performance.now() - recoveredAt > RECOVERED_AFTER_MS) recoveries = 0;
    if (error.type === Hls.ErrorTypes.MEDIA_ERROR && recoveries++ < MAX_RECOVERIES) {
      recoveredAt = performance.now();
      hls.recoverMediaError();
      return;
    }
    hls.stopLoad();
    if (isRefused) onError(isOwn ? refusedFor(token) : "network");
    else if (error.response?.code === 404) onError("not_found");
    else onError(error.type === Hls.ErrorTypes.NETWORK_ERROR ? "network" : "media");
  });
  /** One level of each size; the others differ from it only in their codec. */
  let listed: Level[] = [];
  hls.on(Hls.Events.MANIFEST_PARSED, (_, { audioTracks }) => {
    keepStereoLevels(hls, audioTracks);
    const { levels, firstLevel } = hls;
    listed = levels.filter((one, index) => {
      const isOfCodec = (other: Level) => other.codecSet === levels[firstLevel]?.codecSet;
      return isOfCodec(one) || !levels.some((other, at) => at !== index && isOfCodec(other) && isSameSize(one, other));
    });
    onRenditions(listed.map(({ width, height, bitrate }, index) => ({ id: String(index), width, height, bitrate })));
  });
  const reportAudioTracks = () =>
    onAudioTracks(
      hls.audioTracks.map(({ name, lang = "" }) => ({ label: name, language: lang })),
      hls.audioTrack,
    );
  hls.on(Hls.Events.AUDIO_TRACKS_UPDATED, reportAudioTracks);
  hls.on(Hls.Events.AUDIO_TRACK_SWITCHING, reportAudioTracks);
  let levels = 0;
  // The first one is the initial value, not a change.
  hls.on(Hls.Events.LEVEL_SWITCHED, () => levels++ > 0 && onRenditionChange());
  if (isLive) endAtTail(hls, video, stop.signal);
  else avoidAwaitedRenditions(hls, video);
  hls.loadSource(url);
  hls.attachMedia(video);
  return {
    chooseRendition(index) {
      const chosen = listed[index];
      const playing = hls.levels[hls.loadLevel]?.codecSet;
      const isAlike = (one: Level) => chosen && one.codecSet === playing && isSameSize(one, chosen);
      const level = chosen?.codecSet === playing ? chosen : (hls.levels.find(isAlike) ?? chosen);
      hls.nextLevel = level ? hls.levels.indexOf(level) : -1;
    },
    chooseAudio(index) {
      hls.audioTrack = index;
    },
    renewToken(renewed) {
      token = renewed;
      return true;
    },
    liveEdge() {
      const { liveSyncPosition: newest, targetLatency, latestLevelDetails: details } = hls;
      if (!details?.live || newest === null) return null;
      // What hls.js makes up for by playing faster is not behind.
      return { newest, start: newest - (targetLatency ?? 0) - details.targetduration };
    },
    close() {
      stop.abort();
      hls.destroy();
    },
  };
}
