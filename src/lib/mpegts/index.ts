export { AccessUnitReader } from "./access-unit-reader.ts";
export { AdtsReader } from "./adts-reader.ts";
export { joinNalUnits } from "./annex-b.ts";
export { type DemuxerLimits, TsDemuxer } from "./demuxer.ts";
export { firstPresentation } from "./first-presentation.ts";
export { h264 } from "./h264.ts";
export { SectionReader } from "./section-reader.ts";
export { describeStream } from "./stream-kinds.ts";
export {
  type ElementaryStream,
  mapSection,
  type Program,
  programSection,
  readPrograms,
  readStreams,
} from "./tables.ts";
