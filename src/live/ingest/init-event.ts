import type { TrackInfo } from "../cmaf/types.ts";
import type { InitEvent } from "../playlists/events.ts";

/** The event of a track whose frame rate is not known here. */
export const initEventOf = ({ name, ...track }: TrackInfo): InitEvent => ({
  track: name,
  kind: track.kind,
  codec: track.codec,
  width: track.width ?? undefined,
  height: track.height ?? undefined,
  channels: track.channels ?? undefined,
  sampleRate: track.sampleRate ?? undefined,
});
