import type { ProgramTrack } from "./program-tracks.ts";

/** Units of PTS and DTS (ISO/IEC 13818-1, 2.4.3.7), which have 33 bits. */
const SECOND = 90_000;
const RANGE = 2 ** 33;

/** As for streams whose programs do not change (timeline/packet-lines.ts). */
const JUMP = 10 * SECOND;
const BACK = SECOND / 10;
/** A track that appears may be stored so much later than the others. */
const NEW_BACK = 2.5 * SECOND;
/** The last packets before a jump may be stored behind the first ones after it, by at most this. */
const STRAGGLING = 3 * SECOND;
/** What the last packet before a jump has, at most. */
const MAX_FRAME = SECOND;
const MAX_AUDIO = SECOND / 20;
const REPORTED = SECOND / 2;

/** Difference of two times, of which either may have wrapped. */
const between = (later: number, earlier: number): number => {
  const ticks = (((later - earlier) % RANGE) + RANGE) % RANGE;
  return ticks < RANGE / 2 ? ticks : ticks - RANGE;
};

/** The decoding time of the last packet of a track. */
type State = { last: number };

/**
 * The clock of one program: where it begins again or jumps, its times continue after those of all tracks. PTS and DTS are changed
 * in place. The reference clock (PCR) stays as it is, because only receivers of a transmission use it.
 */
export class TransportClock {
  /** Jumps that a person would notice, and the time of the first, in seconds from the first packet. */
  count = 0;
  firstSeconds = 0;
  readonly #states = new Map<ProgramTrack, State>();
  #offset = 0;
  #former = 0;
  #end: number | null = null;
  #first = 0;
  #hasVideo = false;

  /** Takes the beginning of a PES packet of a track. */
  correct(data: Buffer, start: number, end: number, track: ProgramTrack): void {
    if (track.kind === "other") return;
    const fields = timesAt(data, start, end);
    const at = fields.at(-1);
    if (at === undefined) return;
    const offset = this.#offsetOf(readTime(data, at), track);
    for (const field of fields) writeTime(data, field, readTime(data, field) + offset);
  }

  /** What is added to the times of a packet. `time`: of its decoding. */
  #offsetOf(time: number, track: ProgramTrack): number {
    const known = this.#states.get(track) ?? (track.continues && this.#states.get(track.continues));
    if (this.#end === null) this.#end = this.#first = time;
    if (this.#isJump(time + this.#offset, known)) {
      const isStraggler =
        known &&
        this.#former !== this.#offset &&
        between(time + this.#former, known.last) < STRAGGLING &&
        between(time + this.#former, known.last) > -BACK;
      if (isStraggler) return this.#follow(time, this.#former, track, known);
      const by = between(time + this.#offset, this.#end);
      this.#former = this.#offset;
      this.#offset -= by;
      if (Math.abs(by) >= REPORTED) {
        if (this.count === 0) this.firstSeconds = between(this.#end, this.#first) / SECOND;
        this.count++;
      }
    }
    return this.#follow(time, this.#offset, track, known);
  }

  #isJump(time: number, known: State | null | undefined): boolean {
    const all = this.#end as number;
    if (between(time, all) > JUMP) return true;
    return known ? between(time, known.last) < -BACK : between(time, all) < -NEW_BACK;
  }

  #follow(time: number, offset: number, track: ProgramTrack, known: State | null | undefined): number {
    const last = time + offset;
    const length = known ? between(last, known.last) : 0;
    // How much audio a packet has differs from one to the next; the end of the video is known better.
    const most = track.kind === "audio" && this.#hasVideo ? MAX_AUDIO : MAX_FRAME;
    const end = last + Math.min(most, Math.max(0, length));
    this.#hasVideo ||= track.kind === "video";
    this.#states.set(track, { last });
    if (between(end, this.#end as number) > 0) this.#end = end;
    return offset;
  }
}

/** Positions of PTS and DTS in the header of a PES packet (2.4.3.6). */
function timesAt(data: Buffer, start: number, end: number): number[] {
  if (start + 14 > end || data.readUIntBE(start, 3) !== 1) return [];
  // Streams other than audio and video, such as padding, have no header with times.
  if (((data[start + 6] as number) & 0xc0) !== 0x80) return [];
  const flags = (data[start + 7] as number) >> 6;
  if (flags < 2) return [];
  return flags === 3 && start + 19 <= end ? [start + 9, start + 14] : [start + 9];
}

/** Five bytes: 3, 15 and 15 bits, each followed by a marker. */
function readTime(data: Buffer, at: number): number {
  const high = ((data[at] as number) >> 1) & 7;
  const middle = data.readUInt16BE(at + 1) >> 1;
  const low = data.readUInt16BE(at + 3) >> 1;
  return high * 2 ** 30 + middle * 2 ** 15 + low;
}

function writeTime(data: Buffer, at: number, time: number): void {
  const ticks = ((time % RANGE) + RANGE) % RANGE;
  const prefix = (data[at] as number) & 0xf0;
  data[at] = prefix | (Math.floor(ticks / 2 ** 30) << 1) | 1;
  data.writeUInt16BE(((Math.floor(ticks / 2 ** 15) & 0x7fff) << 1) | 1, at + 1);
  data.writeUInt16BE(((ticks % 2 ** 15) << 1) | 1, at + 3);
}
