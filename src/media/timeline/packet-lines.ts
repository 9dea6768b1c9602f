import { isPaused, type Pause } from "./pauses.ts";
import type { TrackTimes } from "./track-times.ts";

/** As ffmpeg's `-dts_delta_threshold`: a jump in a transport stream by more is one of its clock, and not a pause. */
const JUMP_SECONDS = 10;
/** As in ffmpeg: its clock does not go back by more, wherever it was recorded again or joined. */
const BACK_SECONDS = 0.1;
/** Elsewhere frames are stored out of order, and a pause may be long. */
const OTHER_JUMP_SECONDS = 600;
const OTHER_BACK_SECONDS = 1;
/** Smaller ones are corrected too, but nothing that a person would notice. */
const REPORTED_SECONDS = 0.5;
/** Tracks of a fragment begin at times that differ by less. */
const SAME_SECONDS = 2;
/** Longer than any line that ffprobe prints of a packet. */
const MAX_LINE = 1000;
/** More are damage. */
const MAX_SHIFTS = 200;

/** From packet `packet` of a track on (counted from 0), the right times are `seconds` later than the times in the file. */
export type Shift = { index: number; packet: number; seconds: number };
/** Where the times of a source jump, in seconds of the file, and how often. `shifts`: corrections that ffmpeg does not make. */
export type Jumps = { count: number; firstSeconds: number; shifts: readonly Shift[] };

/**
 * Where times come from: an index, whose edits may show packets again; the clock of a transmission, which may jump and which
 * ffmpeg continues by itself; one that continues; or fragments, of which a track may be read far ahead of another one.
 */
export type Clock = "index" | "discontinuous" | "continuous" | "fragments";

type Context = {
  clock: Clock;
  /** Tracks with times that the demuxer computes, which may be off by less than a jump that is reported. */
  vague?: ReadonlySet<number>;
  /** The pauses of each track with an index, in seconds of the file: what is in them does not play. */
  pauses?: ReadonlyMap<number, readonly Pause[]>;
};

/** Reads what ffprobe prints of packets: `stream_index,pts_time,dts_time,duration_time,flags`. */
export class PacketLines {
  /** The streams that have packets, also others than the tracks. */
  readonly seen = new Set<number>();
  readonly #tracks: ReadonlyMap<number, TrackTimes>;
  readonly #clock: Clock;
  readonly #expected = new Map<number, number>();
  readonly #latest = new Map<number, number>();
  readonly #shifted = new Map<number, number>();
  readonly #shifts: Shift[] = [];
  #offset = 0;
  #count = 0;
  #firstSeconds = 0;
  #rest = "";

  readonly #vague: ReadonlySet<number>;

  readonly #pauses: ReadonlyMap<number, readonly Pause[]>;

  constructor(tracks: ReadonlyMap<number, TrackTimes>, { clock, vague, pauses }: Context) {
    this.#tracks = tracks;
    this.#clock = clock;
    this.#vague = vague ?? new Set();
    this.#pauses = pauses ?? new Map();
  }

  /** Jumps that were followed; null when there are none. */
  get jumps(): Jumps | null {
    if (this.#count === 0) return null;
    return { count: this.#count, firstSeconds: this.#firstSeconds, shifts: this.#shifts };
  }

  take(text: string): void {
    const lines = (this.#rest + text).split("\n");
    this.#rest = (lines.pop() ?? "").slice(0, MAX_LINE);
    for (const line of lines) this.#packet(line);
  }

  #packet(line: string): void {
    const [stream = "", pts = "", dts = "", duration = "", flags = ""] = line.split(",");
    const index = Number(stream);
    if (stream === "") return;
    this.seen.add(index);
    const track = this.#tracks.get(index);
    if (!track) return;
    const [shown, decoded, lasts] = [pts, dts, duration].map((field) => {
      const seconds = Number.parseFloat(field);
      return Number.isFinite(seconds) ? seconds : null;
    }) as [number | null, number | null, number | null];
    const seconds = shown ?? decoded;
    // An edit list hides what only prepares the decoder.
    const isHidden = flags[1] === "D";
    if (this.#clock === "index" && (isHidden || isPaused(this.#pauses.get(index), seconds ?? 0))) return;
    // ffmpeg also hides fragments whose times begin again. It is among the packets that are shifted.
    const isBeforeFirst = track.first === null;
    if (this.#clock !== "discontinuous" && isHidden && isBeforeFirst) return track.add(null, null);
    if (this.#clock === "discontinuous") {
      if (decoded !== null) this.#follow(index, decoded, lasts ?? 0);
    } else if (this.#clock !== "index" && seconds !== null) {
      const offset = this.#offsetOf(index, seconds, lasts ?? 0);
      if ((this.#shifted.get(index) ?? 0) !== offset) {
        this.#shifts.push({ index, packet: track.packets, seconds: offset });
        this.#shifted.set(index, offset);
      }
      return track.add(seconds + offset, lasts);
    }
    track.add(seconds === null ? null : seconds + this.#offset, lasts);
  }

  #offsetOf(index: number, shown: number, lasts: number): number {
    if (this.#clock === "fragments") return this.#followFragment(index, shown, lasts);
    this.#followShown(index, shown, lasts);
    return this.#offset;
  }

  /** As below, but each track by itself: one jumps where another one of the same fragments did. */
  #followFragment(index: number, shown: number, lasts: number): number {
    let offset = this.#shifted.get(index) ?? 0;
    const latest = this.#latest.get(index);
    if (latest !== undefined && this.#shifts.length < MAX_SHIFTS) {
      const end = Math.max(...this.#expected.values());
      const isForward = this.#expected.size > 1 && shown + offset > end + OTHER_JUMP_SECONDS;
      if (shown + offset < latest - OTHER_BACK_SECONDS || isForward) {
        const isKnown = Math.abs(shown + this.#offset - (this.#expected.get(index) ?? 0)) < SAME_SECONDS;
        if (!isKnown) {
          this.#offset = offset;
          this.#jump(shown + offset - end, end);
        }
        offset = this.#offset;
      }
    }
    this.#continue(index, shown + offset, lasts);
    return offset;
  }

  /** As ffmpeg does: from when the last packet of the same track ends. */
  #follow(index: number, decoded: number, lasts: number): void {
    const expected = this.#expected.get(index);
    const by = expected === undefined ? 0 : decoded + this.#offset - expected;
    const back = this.#vague.has(index) ? REPORTED_SECONDS : BACK_SECONDS;
    if (expected !== undefined && (by > JUMP_SECONDS || by < -back)) this.#jump(by, expected);
    this.#expected.set(index, decoded + this.#offset + lasts);
  }

  /** From when the longest track ends. A pause in which another track continues is none of the clock. */
  #followShown(index: number, shown: number, lasts: number): void {
    const latest = this.#latest.get(index);
    if (latest !== undefined && this.#shifts.length < MAX_SHIFTS) {
      const end = Math.max(...this.#expected.values());
      const isBack = shown + this.#offset < latest - OTHER_BACK_SECONDS;
      // With video alone it may be an image that does not change.
      const isForward = this.#expected.size > 1 && shown + this.#offset > end + OTHER_JUMP_SECONDS;
      if (isBack || isForward) this.#jump(shown + this.#offset - end, end);
    }
    this.#continue(index, shown + this.#offset, lasts);
  }

  #continue(index: number, seconds: number, lasts: number): void {
    this.#latest.set(index, Math.max(seconds, this.#latest.get(index) ?? seconds));
    this.#expected.set(index, Math.max(seconds + lasts, this.#expected.get(index) ?? seconds));
  }

  #jump(by: number, at: number): void {
    this.#offset -= by;
    if (Math.abs(by) < REPORTED_SECONDS) return;
    if (this.#count === 0) this.#firstSeconds = at;
    this.#count++;
  }
}
