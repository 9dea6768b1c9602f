import { INIT_NAME } from "#media/arguments.ts";
import { type LivePlaylist, PlaylistWriter } from "./live-playlist.ts";
import { partName } from "./names.ts";
import type { Part } from "./part-list.ts";
import type { Segment, TrackWindow } from "./track-window.ts";

/** draft-pantos-hls-rfc8216bis, 8: 9 for EXT-X-SKIP, 6 for EXT-X-MAP in a playlist of segments. */
const LOW_LATENCY_VERSION = 9;
const PLAIN_VERSION = 6;
/** In target durations, 4.4.3.8: HOLD-BACK is at least 3, CAN-SKIP-UNTIL at least 6. */
const HOLD_BACK = 3;
const SKIP_UNTIL = 6;
/** In PART-TARGETs, 4.4.3.8: at least 2, and should be at least 3. */
const PART_HOLD_BACK = 3;
/**
 * In PART-TARGETs: after the end of a segment its captions are requested. hls.js does not know parts of captions, and would
 * show them when they are over.
 */
const CAPTION_PARTS = 2;
/** In target durations, 4.4.4.9: parts that are older should leave the playlist. */
const PARTS_LISTED = 3;

export type MediaPlaylistOptions = {
  isLowLatency: boolean;
  /** A delta update (6.2.5.1): without the segments that the client has. */
  skip: boolean;
  targetSeconds: number;
  partTargetSeconds: number;
  /** There are captions, which are complete with a segment only. */
  isCaptioned: boolean;
  /** The publisher is disconnected: which part comes next, and when, is unknown. */
  isInterrupted: boolean;
  isEnded: boolean;
  /** The other tracks, for rendition reports. */
  others: readonly TrackWindow[];
  /** The name of the playlist in the folder of each track. */
  playlistName: string;
};

/**
 * The media playlist of a track (draft-pantos-hls-rfc8216bis, 4.4). It has no EXT-X-PLAYLIST-TYPE, since segments leave
 * it (4.4.3.5). Every segment has a date: a date for the first alone would be added to another segment when the first
 * leaves, and 6.2.1 forbids changes of segments that are listed.
 */
export function renderMediaPlaylist(track: TrackWindow, options: MediaPlaylistOptions): LivePlaylist {
  const writer = new PlaylistWriter();
  // 6.2.5.1: the directive is ignored after the end.
  const isDelta = options.isLowLatency && options.skip && !options.isEnded;
  const skipped = isDelta ? skippable(track, SKIP_UNTIL * options.targetSeconds) : 0;
  writeHeader(writer, track, options);
  if (skipped > 0) writer.add(`#EXT-X-SKIP:SKIPPED-SEGMENTS=${skipped}\n`);
  // A delta update omits all tags before the boundary, EXT-X-MAP included: the client has it.
  else writer.add('#EXT-X-MAP:URI="').addUri(INIT_NAME).add('"\n');
  const partsFrom = options.isLowLatency
    ? track.endSeconds - PARTS_LISTED * options.targetSeconds
    : Number.POSITIVE_INFINITY;
  for (let number = track.firstNumber + skipped; number <= track.lastNumber; number++) {
    const segment = track.segment(number) as Segment;
    writer.add(segment.head);
    if (segment.startSeconds > partsFrom) writeParts(writer, number, segment.parts);
    writer.add(segment.info).addUri(segment.name).add("\n");
  }
  writeTail(writer, track, options);
  return writer.end();
}

function writeHeader(writer: PlaylistWriter, track: TrackWindow, options: MediaPlaylistOptions): void {
  const { isLowLatency, targetSeconds, partTargetSeconds } = options;
  const holdBack = `HOLD-BACK=${seconds(HOLD_BACK * targetSeconds)}`;
  writer.add("#EXTM3U\n");
  writer.add(`#EXT-X-VERSION:${isLowLatency ? LOW_LATENCY_VERSION : PLAIN_VERSION}\n`);
  writer.add(`#EXT-X-TARGETDURATION:${targetSeconds}\n`);
  if (isLowLatency) {
    const isBehind = options.isCaptioned ? targetSeconds + CAPTION_PARTS * partTargetSeconds : 0;
    const partHoldBack = `PART-HOLD-BACK=${seconds(Math.max(PART_HOLD_BACK * partTargetSeconds, isBehind))}`;
    const skip = `CAN-SKIP-UNTIL=${seconds(SKIP_UNTIL * targetSeconds)}`;
    writer.add(`#EXT-X-SERVER-CONTROL:CAN-BLOCK-RELOAD=YES,${partHoldBack},${holdBack},${skip}\n`);
    writer.add(`#EXT-X-PART-INF:PART-TARGET=${seconds(partTargetSeconds)}\n`);
  } else {
    // Without parts a player still gains the time that it would wait between two requests: about a second.
    writer.add(`#EXT-X-SERVER-CONTROL:CAN-BLOCK-RELOAD=YES,${holdBack}\n`);
  }
  writer.add(`#EXT-X-MEDIA-SEQUENCE:${track.firstNumber}\n`);
  writer.add(`#EXT-X-DISCONTINUITY-SEQUENCE:${track.discontinuitySequence}\n`);
  if (track.isIndependent) writer.add("#EXT-X-INDEPENDENT-SEGMENTS\n");
}

/** What follows the last complete segment. */
function writeTail(writer: PlaylistWriter, track: TrackWindow, options: MediaPlaylistOptions): void {
  const { open, isDiscontinuityNext, nextPart } = track;
  const { isLowLatency, isEnded, isInterrupted } = options;
  const isOpenListed = isLowLatency && open !== null && open.parts.listed.length > 0;
  if (isOpenListed) {
    writer.add(open.head);
    writeParts(writer, open.number, open.parts.listed);
  } else if (open?.isDiscontinuous) writer.add("#EXT-X-DISCONTINUITY\n");
  // An interruption is announced when it begins, in all playlists. Announced with the next segment, it would be in one
  // playlist before the others, which ends playback in hls.js ("discontinuity sequence mismatch"). While a segment is open
  // it must wait for its end: the tag applies to the next segment, but would precede the EXTINF of this one.
  if (isDiscontinuityNext && !open) writer.add("#EXT-X-DISCONTINUITY\n");
  if (isEnded) {
    writer.add("#EXT-X-ENDLIST\n");
    return;
  }
  if (!isLowLatency) return;
  if (nextPart && !isInterrupted)
    writer.add('#EXT-X-PRELOAD-HINT:TYPE=PART,URI="').addUri(partName(nextPart.segment, nextPart.part)).add('"\n');
  for (const other of options.others) writeReport(writer, other, options.playlistName);
}

function writeParts(writer: PlaylistWriter, segment: number, parts: readonly Part[]): void {
  parts.forEach(({ durationSeconds, isIndependent }, part) => {
    writer
      .add(`#EXT-X-PART:DURATION=${seconds(durationSeconds)},URI="`)
      .addUri(partName(segment, part))
      .add(isIndependent ? '",INDEPENDENT=YES\n' : '"\n');
  });
}

/** 4.4.5.4: the last segment, complete or not, and its last part. */
function writeReport(writer: PlaylistWriter, track: TrackWindow, playlistName: string): void {
  const isOpenListed = track.open !== null && track.open.parts.listed.length > 0;
  if (!isOpenListed && track.length === 0) return;
  const last = isOpenListed && track.open ? track.open.number : track.lastNumber;
  const parts = track.parts(last).length;
  writer
    .add('#EXT-X-RENDITION-REPORT:URI="')
    .addUri(`../${track.init.track}/${playlistName}`)
    .add(`",LAST-MSN=${last}${parts > 0 ? `,LAST-PART=${parts - 1}` : ""}\n`);
}

/** Number of complete segments that end at least `boundary` seconds before the end of the last one. */
function skippable(track: TrackWindow, boundary: number): number {
  const until = track.completeSeconds - boundary;
  let number = track.lastNumber;
  for (; number >= track.firstNumber; number--) {
    const { startSeconds, durationSeconds } = track.segment(number) as Segment;
    if (startSeconds + durationSeconds <= until) break;
  }
  return number - track.firstNumber + 1;
}

/** Five decimals, as EXTINF has: parts add up to their segment. */
const seconds = (value: number) => String(Number(value.toFixed(5)));
