import Hls, {
  type FragmentLoaderContext,
  type HlsConfig,
  type LoaderCallbacks,
  type LoaderConfiguration,
  type LoaderContext,
} from "hls.js";
import { serverUrl } from "./own-script.ts";

/** What a player says about its playback with each request for media (CTA-5004). */
export type CmcdSession = {
  /** The id of the beacons of the same playback. */
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
  const dataOf = ({ frag, part }: FragmentLoaderContext): [key: string, text: string][] => {
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
      ["sid", JSON.stringify(OWN + session.id)],
      ["st", session.isLive ? "l" : "v"],
      ["su", !hasStarted],
    ];
    hasStalled = false;
    const given = values.filter(([, value]) => value !== false);
    return given.map(([key, value]) => [key, value === true ? key : `${key}=${value}`]);
  };
  return class extends Hls.DefaultConfig.loader {
    override load(
      context: LoaderContext,
      config: LoaderConfiguration,
      callbacks: LoaderCallbacks<LoaderContext>,
    ): void {
      const fragment = context as FragmentLoaderContext;
      if (fragment.url.startsWith(serverUrl)) {
        const data = dataOf(fragment);
        if (isOwnSite) fragment.headers = { ...fragment.headers, ...headersOf(data) };
        else {
          const report = data.map(([, text]) => text).join(",");
          fragment.url += `${fragment.url.includes("?") ? "&" : "?"}CMCD=${encodeURIComponent(report)}`;
        }
      }
      super.load(context, config, callbacks);
    }
  } as unknown as HlsConfig["fLoader"];
}

/** Headers leave the URLs as caches know them. On other sites they would cost a preflight request for each segment. */
const isOwnSite = new URL(serverUrl).origin === location.origin;

/** The header of each key (CTA-5004, 2). */
const HEADERS: Record<string, string> = {
  bl: "Request",
  su: "Request",
  bs: "Status",
  br: "Object",
  d: "Object",
  ot: "Object",
};

function headersOf(data: readonly [key: string, text: string][]): Record<string, string> {
  const headers: Record<string, string> = {};
  for (const [key, text] of data) {
    const name = `CMCD-${HEADERS[key] ?? "Session"}`;
    headers[name] = headers[name] === undefined ? text : `${headers[name]},${text}`;
  }
  return headers;
}

const round100 = (value: number) => Math.round(value / 100) * 100;

/** Seconds. */
function bufferAhead({ buffered, currentTime }: HTMLVideoElement): number {
  for (let index = 0; index < buffered.length; index++)
    if (buffered.start(index) <= currentTime + 0.1 && buffered.end(index) > currentTime)
      return buffered.end(index) - currentTime;
  return 0;
}
