import type { TrackTimes } from "./track-times.ts";

/** As ffmpeg's `-dts_delta_threshold`: a jump in a transport stream by more is one of its clock, and not a pause. */
const JUMP_SECONDS = 10;
/** Longer than any line that ffprobe prints of a packet. */
const MAX_LINE = 1000;

/** Reads what ffprobe prints of packets: `stream_index,pts_time,dts_time,duration_time`. */
export class PacketLines {
  readonly #tracks: ReadonlyMap<number, TrackTimes>;
  readonly #isDiscontinuous: boolean;
  readonly #expected = new Map<number, number>();
  #offset = 0;
  #rest = "";

  /** `isDiscontinuous`: its clock may jump, and ffmpeg continues its own. */
  constructor(tracks: ReadonlyMap<number, TrackTimes>, { isDiscontinuous }: { isDiscontinuous: boolean }) {
    this.#tracks = tracks;
    this.#isDiscontinuous = isDiscontinuous;
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
    if (expected !== undefined && Math.abs(found - expected) > JUMP_SECONDS) this.#offset += expected - found;
    this.#expected.set(index, decoded + this.#offset + lasts);
  }
}
