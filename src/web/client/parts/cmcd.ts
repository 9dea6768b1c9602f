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
  const hasStarted = () => video.played.length > 0;
  video.addEventListener("waiting", () => {
    hasStalled = hasStarted() && !video.seeking;
  });
  const dataOf = ({ frag, part }: FragmentLoaderContext): [key: string, text: string][] => {
    const { levels, mainForwardBufferInfo } = hls();
    const isAudio = frag.type === "audio";
    const level = levels[frag.level];
    const values: [key: string, value: string | number | boolean][] = [
      // In steps of 100 ms.
      ["bl", Math.round((mainForwardBufferInfo?.len ?? 0) * 10) * 100],
      ["br", isAudio || !level ? false : Math.round(level.bitrate / 1000)],
      ["bs", hasStalled],
      ["cid", JSON.stringify(session.content.slice(0, 64))],
      ["d", Math.round((part?.duration ?? frag.duration) * 1000)],
      ["ot", frag.sn === "initSegment" ? "i" : isAudio ? "a" : level?.audioCodec && !level.audioGroupId ? "av" : "v"],
      ["sid", JSON.stringify(OWN + session.id)],
      ["st", session.isLive ? "l" : "v"],
      ["su", !hasStarted()],
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
        if (usesHeaders) fragment.headers = { ...fragment.headers, ...headersOf(data) };
        else {
          const report = data.map(([, text]) => text).join(",");
          fragment.url += `${fragment.url.includes("?") ? "&" : "?"}CMCD=${encodeURIComponent(report)}`;
        }
      }
      super.load(context, config, {
        ...callbacks,
        onSuccess(response, ...more) {
          usesHeaders &&= response.url.startsWith(serverUrl);
          callbacks.onSuccess(response, ...more);
        },
        onError(...fault) {
          usesHeaders = false;
          callbacks.onError(...fault);
        },
      });
    }
  } as unknown as HlsConfig["fLoader"];
}

/**
 * Headers leave the URLs as caches know them. For another origin they would cost a preflight request for each segment, or be
 * refused: where the page is of another site, or the server redirects to a bucket.
 */
let usesHeaders = new URL(serverUrl).origin === location.origin;

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
