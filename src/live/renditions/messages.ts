import type { ShownCaption } from "#lib/closed-captions";
import type { GapEvent, InitEvent, PartEvent, SegmentEvent } from "../playlists/events.ts";
import type { RenditionsFrom } from "../playlists/rendition-periods.ts";

/** The directory of the renditions in that of their stream: `renditions/<track>/00001.m4s`. A recording does not contain them. */
export const RENDITIONS_FOLDER = "renditions";

/** What is reported of the renditions of a running stream, and of its recognized speech, in addition to what its ingest process reports. */
export type RenditionReport =
  | { type: "init"; stream: string; init: InitEvent }
  | { type: "part"; stream: string; part: PartEvent }
  | { type: "segment"; stream: string; segment: SegmentEvent }
  | { type: "gap"; stream: string; gap: GapEvent }
  | { type: "service"; stream: string; service: string; language?: string }
  | { type: "caption"; stream: string; caption: ShownCaption }
  /** The names of all that are being encoded. */
  | { type: "encoded"; stream: string; encoded: string[] }
  /** Renditions that the DASH manifest lists. */
  | { type: "renditions"; stream: string; renditions: RenditionsFrom };
