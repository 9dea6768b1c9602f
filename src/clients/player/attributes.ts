type Played =
  | {
      /** The asset: its number, or its `vid_…` id. */
      playbackId: string | number;
      live?: undefined;
    }
  | {
      /** Name of a live channel: waits for its stream, plays it, and then its recording. */
      live: string;
      playbackId?: undefined;
    };

export type PlayerAttributes = Played & {
  /** Token for signed playback. A new one takes effect without interrupting playback. */
  token?: string | undefined;
  /** Starts automatically, muted, as browsers require. */
  autoplay?: boolean | undefined;
  /** Starts muted. */
  muted?: boolean | undefined;
  /** Restarts at the end. */
  loop?: boolean | undefined;
  /** URL of an image that replaces the asset's poster. */
  poster?: string | undefined;
  preload?: "none" | "metadata" | "auto" | undefined;
  /** Start position in seconds. */
  startTime?: number | undefined;
  /** `off`: starts at the beginning, not where the viewer left. */
  resume?: "off" | undefined;
  /** The shortcuts work on the whole page. */
  pageKeys?: boolean | undefined;
  /** Shows what is said, below the video or in the element with this id. */
  transcript?: boolean | string | undefined;
  /** Shown over the video, and the name for screen readers. */
  videoTitle?: string | undefined;
  /** A CSS color for the timeline. */
  accentColor?: string | undefined;
  /** `off`: nothing of what is watched is reported, and the browser remembers no id for it. */
  analytics?: "off" | undefined;
  /** Mux's name for `analytics="off"`. */
  disableTracking?: boolean | undefined;
  /** Language of the controls; default: that of the page, else the browser's. */
  lang?: string | undefined;
};

/**
 * React 19 and Vue set properties of a custom element that has them, and before the player is in the page these have no effect;
 * React 18 always sets attributes. In capitals the name is the same attribute for HTML, and no property.
 */
const ATTRIBUTES = {
  playbackId: "PLAYBACK-ID",
  live: "LIVE",
  token: "TOKEN",
  autoplay: "AUTOPLAY",
  muted: "MUTED",
  loop: "LOOP",
  poster: "POSTER",
  preload: "PRELOAD",
  startTime: "START-TIME",
  resume: "RESUME",
  pageKeys: "PAGE-KEYS",
  transcript: "TRANSCRIPT",
  videoTitle: "VIDEO-TITLE",
  accentColor: "ACCENT-COLOR",
  analytics: "ANALYTICS",
  disableTracking: "DISABLE-TRACKING",
  lang: "LANG",
} as const satisfies Record<keyof PlayerAttributes, string>;

/** The attributes of `<svc-player>`. */
export function attributesOf(props: PlayerAttributes): Record<string, string> {
  const result: Record<string, string> = {};
  for (const [name, attribute] of Object.entries(ATTRIBUTES)) {
    const value = props[name as keyof PlayerAttributes];
    if (value !== undefined && value !== false) result[attribute] = value === true ? "" : String(value);
  }
  return result;
}
