export { AUDIO_ROLES, type AudioChanges } from "./audio-tracks/types.ts";
export { ClipFault, type Clipped, clipped } from "./clip/fault.ts";
export { type ClipPlaylist, type CutPlaylist, clipPlaylists, cutAlong, cutMain } from "./clip/hls.ts";
export { changed, cutMpd, parsed, templatesOf, typeOf } from "./clip/mpd.ts";
export { impossible } from "./clip/not-possible.ts";
export type { CutRange, TimeRange } from "./clip/range.ts";
export { reduceMpd, reducePlaylist } from "./clip/reduce.ts";
export { readTimeline, type Timeline, writeTimeline } from "./clip/timeline.ts";
export { hlsAttribute, hlsAttributes } from "./hls-attributes.ts";
export { checkHls } from "./hls-check.ts";
export { type HlsPlaylist, type HlsSegment, type HlsVariant, readHls, type Span, uniqueVariants } from "./hls-read.ts";
export { linesOf } from "./lines-of.ts";
export { LiveMpd, type LivePeriod } from "./live-mpd.ts";
export {
  type AudioRendition,
  bitRates,
  masterPlaylist,
  mediaPlaylist,
  type PlaylistSegment,
  quoted,
} from "./m3u8.ts";
export { subtitlePlaylist, withTimestampMap } from "./m3u8-subtitles.ts";
export { ISOFF_LIVE_PROFILE, type MpdRepresentation, type MpdSet, type MpdTemplates, staticMpd } from "./mpd.ts";
export { type MpdContent, readMpd } from "./mpd-read.ts";
export { type Below, rebaseMaster, rebaseMpd, rebaseStoryboard, storyboardJson } from "./rebase.ts";
export { readReferences } from "./references.ts";
export { resolveReference } from "./relative-reference.ts";
export { masterOfSelection, type SideRange, type VariantSelection } from "./resolution-filter.ts";
export {
  containsRun,
  isShared,
  type NumberedFiles,
  numberedFiles,
  pathOf,
  type SharedMedia,
  SharedPaths,
} from "./shared-media.ts";
export { storyboardImages } from "./storyboard.ts";
export { writeXml } from "./xml-write.ts";
