/** Attributes of the player whose change takes effect immediately. */
export const OBSERVED = [
  "accent-color",
  "autoplay",
  "live",
  "logo",
  "loop",
  "muted",
  "playback-id",
  "playback-token",
  "poster",
  "token",
  "transcript",
  "video-title",
];
