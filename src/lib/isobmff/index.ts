export { type Box, boxes, field, find, flagsOf, isLong, uint16, uint32 } from "./boxes.ts";
export { type EmptyEdit, readEmptyEdits } from "./empty-edits.ts";
export { readEncryptedTracks } from "./encrypted-tracks.ts";
export { type FragmentTrack, readFragmentTracks, samplesOfFragment } from "./fragment-samples.ts";
export { isFragmented } from "./fragments.ts";
export { hdrBoxes, readHdrBoxes } from "./hdr-boxes.ts";
export { joinedInit, renumberSegment } from "./joined-init.ts";
export { type ByteRange, bytesOf, joinRanges, type Mp4Layout, type ReadBytes, readLayout } from "./layout.ts";
export { rangesOf, readIndex, type TrackIndex, withinFile } from "./sample-index.ts";
export {
  configurationOf,
  type InitSegment,
  joinSegments,
  readColors,
  readFirstSample,
  readInit,
  readSegmentTimes,
  SEGMENT_HEAD_BYTES,
  sampleEntryOf,
  shiftSegment,
} from "./segments.ts";
export { sphericalBoxes } from "./spherical-boxes.ts";
export { type PresentedSample, readTextSamples } from "./text-samples.ts";
export { readSubtitleTracks } from "./text-tracks.ts";
export { isSync, readTrackFragment, type SampleDefaults } from "./track-fragment.ts";
export { box, long, segmentIndex, words } from "./write-boxes.ts";
export { INDEX_OFFSET, SEGMENT_HEAD, type TimedSample, writeFragment } from "./write-fragment.ts";
export { TRACK_ID, writeInit } from "./write-init.ts";
