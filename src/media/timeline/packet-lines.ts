import type { TrackTimes } from "./track-times.ts";

/** As ffmpeg's `-dts_delta_threshold`: a jump in a transport stream by more is one of its clock, and not a pause. */
const JUMP_SECONDS = 10;
/** As in ffmpeg: its clock does not go back by more, wherever it was recorded again or joined. */
const BACK_SECONDS = 0.1;
/** Smaller ones are corrected too, but nothing that a person would notice. */
const REPORTED_SECONDS = 0.5;
/** Longer than any line that ffprobe prints of a packet. */
const MAX_LINE = 1000;

/** Where the times of a source jump, in seconds of the file, and how often. */
export type Jumps = { count: number; firstSeconds: number };

/** Reads what ffprobe prints of packets: `stream_index,pts_time,dts_time,duration_time`. */
export class PacketLines {
  readonly #tracks: ReadonlyMap<number, TrackTimes>;
  readonly #isDiscontinuous: boolean;
  readonly #expected = new Map<number, number>();
  #offset = 0;
  #jumps: Jumps | null = null;
  #rest = "";

  /** `isDiscontinuous`: its clock may jump, and ffmpeg continues its own. */
  constructor(tracks: ReadonlyMap<number, TrackTimes>, { isDiscontinuous }: { isDiscontinuous: boolean }) {
    this.#tracks = tracks;
    this.#isDiscontinuous = isDiscontinuous;
  }

  /** Jumps that were followed; null when there are none. */
  get jumps(): Jumps | null {
    return this.#jumps;
  }

  take(text: string): void {
    const lines = (this.#rest + text).split("\n");
    this.#rest = (lines.pop() ?? "").slice(0, MAX_LINE);
    for (const line of lines) this.#packet(line);
  }

  #packet(line: string): void {
    const [stream = "", pts = "", dts = "", duration = ""] = line.split(",");
    const index = Number(stream);
    const track = this.#tracks.get(index);
    if (!track || stream === "") return;
    const [shown, decoded, lasts] = [pts, dts, duration].map((field) => {
      const seconds = Number.parseFloat(field);
      return Number.isFinite(seconds) ? seconds : null;
    }) as [number | null, number | null, number | null];
    if (this.#isDiscontinuous && decoded !== null) this.#follow(index, decoded, lasts ?? 0);
    const seconds = shown ?? decoded;
    track.add(seconds === null ? null : seconds + this.#offset, lasts);
  }

  #follow(index: number, decoded: number, lasts: number): void {
    const expected = this.#expected.get(index);
    const found = decoded + this.#offset;
    const by = expected === undefined ? 0 : found - expected;
    if (expected !== undefined && (by > JUMP_SECONDS || by < -BACK_SECONDS)) {
      this.#offset -= by;
      if (Math.abs(by) > REPORTED_SECONDS)
        this.#jumps = { count: (this.#jumps?.count ?? 0) + 1, firstSeconds: this.#jumps?.firstSeconds ?? expected };
    }
    this.#expected.set(index, decoded + this.#offset + lasts);
  }
}
