import { describeStream, type ElementaryStream } from "#lib/mpegts";

/** A track of a program, whichever PIDs carry it in the course of the source. */
export type ProgramTrack = ElementaryStream & {
  kind: "video" | "audio" | "other";
  codec: string;
  /** The track of another codec that it continues. */
  continues: ProgramTrack | null;
};

/** From where a PID carries a track. */
export type Route = { from: number; track: ProgramTrack };

/** More are not followed: television has a few. */
const MAX_TRACKS = 64;
const MAX_VERSIONS = 1000;
const FIRST_FREE_PID = 0x20;
const LAST_PID = 0x1ffe;

/**
 * Follows the map of a program (ISO/IEC 13818-1, 2.4.4.8) through its versions. Television programs change PIDs, codecs and the number
 * of tracks from one version to the next.
 */
export class ProgramTracks {
  /** All that were there, in the order in which they appeared. `pid` is their own. */
  readonly tracks: ProgramTrack[] = [];
  /** Whether a reader that knows the first version alone would lose something. */
  isChanged = false;
  #current = new Map<number, ProgramTrack>();
  #versions = 0;
  readonly #used: Set<number>;

  /** `used`: PIDs that a new track must not get. */
  constructor(used: Set<number>) {
    this.#used = used;
  }

  /** Reads a version of the map. Returns where each PID leads that has changed. */
  read(streams: readonly ElementaryStream[]): Route[] {
    if (this.tracks.length + streams.length > MAX_TRACKS || ++this.#versions > MAX_VERSIONS) return [];
    const isFirst = this.tracks.length === 0;
    const next = new Map<number, ProgramTrack>();
    const wanted = streams.map((stream) => ({ ...stream, ...(describeStream(stream) ?? OTHER) }));
    const taken = new Set<ProgramTrack>();
    const isFree = (track: ProgramTrack) => !taken.has(track);
    // In this order: what stays, what moved to another PID, what continues in another codec, what is new.
    const choices: ((stream: Wanted) => ProgramTrack | undefined)[] = [
      (stream) => this.#of(stream, ({ pid }) => this.#current.get(stream.pid)?.pid === pid),
      (stream) => this.#of(stream, ({ pid }) => pid === stream.pid),
      (stream) => this.#of(stream, ({ descriptors }) => descriptors.equals(stream.descriptors)),
      (stream) => this.#of(stream, () => true),
    ];
    for (const choose of choices)
      for (const stream of wanted) {
        if (next.has(stream.pid)) continue;
        const track = choose({ ...stream, isFree });
        if (!track) continue;
        next.set(stream.pid, track);
        taken.add(track);
      }
    const continued = new Set<ProgramTrack>();
    for (const stream of wanted) {
      if (next.has(stream.pid)) continue;
      const continues =
        [...this.#current.values()].find((one) => one.kind === stream.kind && isFree(one) && !continued.has(one)) ??
        null;
      if (continues) continued.add(continues);
      next.set(stream.pid, this.#add(stream, stream.kind === "other" ? null : continues));
      this.isChanged ||= !isFirst && stream.kind !== "other";
    }
    const routes = [...next]
      .filter(([pid, track]) => this.#current.get(pid) !== track)
      .map(([from, track]) => ({ from, track }));
    this.isChanged ||= routes.some(({ from, track }) => from !== track.pid && track.kind !== "other");
    this.#current = next;
    return routes;
  }

  #of({ kind, codec, isFree }: Wanted, isWanted: (track: ProgramTrack) => boolean): ProgramTrack | undefined {
    return this.tracks.find((one) => one.kind === kind && one.codec === codec && isFree(one) && isWanted(one));
  }

  #add({ type, pid, descriptors, kind, codec }: Omit<Wanted, "isFree">, continues: ProgramTrack | null): ProgramTrack {
    let own = pid;
    if (this.#used.has(own)) for (own = FIRST_FREE_PID; this.#used.has(own) && own < LAST_PID; own++);
    this.#used.add(own);
    const track = { type, pid: own, descriptors, kind, codec, continues };
    this.tracks.push(track);
    return track;
  }
}

type Wanted = Pick<ProgramTrack, "type" | "pid" | "descriptors" | "kind" | "codec"> & {
  isFree: (track: ProgramTrack) => boolean;
};
const OTHER = { kind: "other", codec: "" } as const;
