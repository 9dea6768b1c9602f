import type { ShownCaption } from "#lib/closed-captions";
import type { GapEvent, InitEvent, PartEvent, SegmentEvent } from "../playlists/events.ts";
import type { RenditionsFrom } from "../playlists/rendition-periods.ts";

/** The directory of the renditions in that of their stream: `renditions/<track>/00001.m4s`. A recording does not contain them. */
export const RENDITIONS_FOLDER = "renditions";

/** What is reported of the renditions of a running stream, and of its recognized speech, in addition to what its ingest process reports. */
export type RenditionReport =
  | { stream: string; init: InitEvent }
  | { stream: string; part: PartEvent }
  | { stream: string; segment: SegmentEvent }
  | { stream: string; gap: GapEvent }
  | { stream: string; service: string; language?: string }
  | { stream: string; caption: ShownCaption }
  /** The names of all that are being encoded. */
  | { stream: string; encoded: string[] }
  /** Those that the DASH manifest lists. */
  | { stream: string; renditions: RenditionsFrom };
