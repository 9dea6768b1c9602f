import Hls, {
  type FragmentLoaderContext,
  type HlsConfig,
  type LoaderCallbacks,
  type LoaderConfiguration,
  type LoaderContext,
} from "hls.js";
import { serverUrl } from "./own-script.ts";

/** What a player says about its playback with each request for media: the query of CTA-5004. */
export type CmcdSession = {
  /** Of the beacons of the same playback. */
  id: string;
  content: string;
  isLive: boolean;
};

/** The server does not count sessions of this player again, which sends beacons. */
const OWN = "vodbox.";

/**
 * The loader of segments and parts with CMCD. Playlists are loaded without, so that caches keep them by their URL; and so is
 * everything that comes from elsewhere: a signed URL of a bucket is valid as it is.
 */
export function cmcdLoader(video: HTMLVideoElement, hls: () => Hls, session: CmcdSession): HlsConfig["fLoader"] {
  let hasStalled = false;
  let hasStarted = false;
  video.addEventListener("playing", () => {
    hasStarted = true;
  });
  video.addEventListener("waiting", () => {
    hasStalled = hasStarted && !video.seeking;
  });
  const dataOf = ({ frag, part }: FragmentLoaderContext): string => {
    const { levels } = hls();
    const isAudio = frag.type === "audio";
    const level = levels[frag.level];
    const bufferedMs = bufferAhead(video) * 1000;
    const values: [key: string, value: string | number | boolean][] = [
      ["bl", round100(bufferedMs)],
      ["br", isAudio || !level ? false : Math.round(level.bitrate / 1000)],
      ["bs", hasStalled],
      ["cid", JSON.stringify(session.content.slice(0, 64))],
      ["d", Math.round((part?.duration ?? frag.duration) * 1000)],
      ["ot", frag.sn === "initSegment" ? "i" : isAudio ? "a" : level?.audioCodec && !level.audioGroupId ? "av" : "v"],
      ["pr", video.playbackRate === 1 ? false : video.playbackRate],
      ["sf", "h"],
      ["sid", JSON.stringify(OWN + session.id)],
      ["st", session.isLive ? "l" : "v"],
      ["su", !hasStarted],
      ["tb", Math.round(Math.max(0, ...levels.map(({ bitrate }) => bitrate)) / 1000) || false],
    ];
    hasStalled = false;
    const given = values.filter(([, value]) => value !== false);
    return given.map(([key, value]) => (value === true ? key : `${key}=${value}`)).join(",");
  };
  return class extends Hls.DefaultConfig.loader {
    override load(
      context: LoaderContext,
      config: LoaderConfiguration,
      callbacks: LoaderCallbacks<LoaderContext>,
    ): void {
      const fragment = context as FragmentLoaderContext;
      if (fragment.url.startsWith(serverUrl)) {
        const joint = fragment.url.includes("?") ? "&" : "?";
        fragment.url += `${joint}CMCD=${encodeURIComponent(dataOf(fragment))}`;
      }
      super.load(context, config, callbacks);
    }
  } as unknown as HlsConfig["fLoader"];
}

const round100 = (value: number) => Math.round(value / 100) * 100;

/** Seconds. */
function bufferAhead({ buffered, currentTime }: HTMLVideoElement): number {
  for (let index = 0; index < buffered.length; index++)
    if (buffered.start(index) <= currentTime + 0.1 && buffered.end(index) > currentTime)
      return buffered.end(index) - currentTime;
  return 0;
}
