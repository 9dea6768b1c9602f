/** Why playback is not possible, as in `player.error`. */
export type PlayerError = {
  /** As in `MediaError`. */
  code: number;
  /** Such as `playback_token_expired`; docs/player.md lists them. */
  reason: string;
  /** In the language of the player. */
  message: string;
};

/** Event of the element by the name of its property. */
export const EVENTS = {
  onCanPlay: "canplay",
  onDurationChange: "durationchange",
  onEnded: "ended",
  onError: "error",
  onLoadedMetadata: "loadedmetadata",
  onPause: "pause",
  onPlay: "play",
  onPlaying: "playing",
  onRateChange: "ratechange",
  onSeeked: "seeked",
  onSeeking: "seeking",
  onTimeUpdate: "timeupdate",
  onTokenExpiring: "tokenexpiring",
  onVolumeChange: "volumechange",
  onWaiting: "waiting",
} as const;

/** Events whose `detail` has more than a media element's. */
type Details = { onError: PlayerError; onTokenExpiring: { expiresAt: Date } };

export type EventProps = {
  [Name in keyof typeof EVENTS]?: (event: Name extends keyof Details ? CustomEvent<Details[Name]> : Event) => void;
};
