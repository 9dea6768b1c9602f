import type { LiveSample } from "#lib/codecs";
import type { PublishWarning } from "./types.ts";

/** A publisher sends more than one track of this kind. */
export const ignoredTrack = (kind: LiveSample["kind"]): PublishWarning => ({
  code: "track_ignored",
  message: `The stream has more than one ${kind} track. The first one plays; disable the others in the encoder.`,
});
