import { type Encoded, encodeSegment, type Group } from "./segment.ts";
import { WalChanged, type WalPosition, type WalReader, type WalState } from "./wal.ts";

/** Pages of one segment, except that a transaction is never split: 8 MiB of the usual pages. */
const SEGMENT_PAGES = 2048;
/** Observations that are kept while nothing can be sent: an hour and more, then they become coarser. */
const MAX_MARKS = 50_000;

/** Up to `frame` the log was seen; its transactions were committed after the time `at`. */
type Mark = { at: number; frame: number };

/** What is observed. */
type Log = Pick<WalReader, "state" | "read" | "databaseVersion">;

/** A generation in progress: which part of the log is in its segments. */
export type Line = {
  readonly generation: string;
  /** Number, checksum and time of the last segment that was encoded. */
  number: number;
  previous: string;
  lastAt: number;
  position: WalPosition;
};

/**
 * Observes the write-ahead log and cuts what is new into segments. The time of a transaction is that of the last
 * observation without it, so a restore to any time contains all that was committed by then, and at most what was
 * committed before the next observation.
 */
export class WalStream {
  readonly #wal: Log;
  readonly #lineOf: () => Line | null;
  readonly #now: () => number;
  #marks: Mark[] = [];
  #observedAt = 0;
  #state: WalState;
  /** The version of the database file that contains the whole log, so that the next writer may restart it; else null. */
  #sealedAs: string | null;
  /** Two readers of the index could otherwise apply an older state after a newer one. */
  #last: Promise<unknown> = Promise.resolve();

  private constructor(
    wal: Log,
    {
      state,
      version,
      ...functions
    }: { state: WalState; now: () => number; lineOf: () => Line | null; version: string },
  ) {
    const { now, lineOf } = functions;
    this.#wal = wal;
    this.#lineOf = lineOf;
    this.#sealedAs = state.frames === 0 ? version : null;
    this.#now = now;
    this.#state = state;
    // When these were committed is not known.
    if (state.frames > 0) this.#marks.push({ at: 0, frame: state.frames });
    this.#observedAt = now();
  }

  /** `lineOf`: the generation in progress; null when there is none. */
  static async open(wal: Log, { now, lineOf }: { now: () => number; lineOf: () => Line | null }): Promise<WalStream> {
    const version = await wal.databaseVersion();
    return new WalStream(wal, { state: await wal.state(), now, lineOf, version });
  }

  get state(): WalState {
    return this.#state;
  }

  /** The lower bound of the time of the oldest transaction that is in no segment; null when there is none. */
  get oldest(): number | null {
    return this.#marks[0]?.at ?? null;
  }

  get hasMore(): boolean {
    return this.#marks.length > 0;
  }

  /** Throws WalChanged when the log was restarted although the line did not have all of it. */
  observe(): Promise<void> {
    return this.#inOrder(() => this.#observe());
  }

  async #observe(): Promise<void> {
    const now = this.#now();
    const state = await this.#wal.state();
    if (state.salts !== this.#state.salts) {
      const isComplete = await this.#isNext(state);
      this.#marks = [];
      this.#sealedAs = null;
      this.#state = { ...state, frames: 0 };
      // Not before the log was read: a generation may have begun meanwhile.
      const line = this.#lineOf();
      if (line) {
        if (!isComplete) throw new WalChanged("Another program has emptied the write-ahead log.");
        line.position = { salts: state.salts, frame: 0, sum: "" };
      }
    }
    if (state.frames > this.#state.frames) {
      this.#sealedAs = null;
      this.#marks.push({ at: this.#observedAt, frame: state.frames });
      if (this.#marks.length > MAX_MARKS) halve(this.#marks);
    }
    this.#state = state;
    this.#observedAt = now;
  }

  /** Continues behind `position`, which the log contains. */
  continueAt(position: WalPosition): void {
    this.#marks = this.#marks.filter(({ frame }) => frame > position.frame);
  }

  /** Starts again from the beginning of the log. */
  restart(): void {
    const { frames } = this.#state;
    this.#marks = frames > 0 ? [{ at: this.#now(), frame: frames }] : [];
  }

  /** Cuts the next segment; null when there is nothing new. With `all` it reaches to the last observation. */
  async cut(line: Line, { all = false } = {}): Promise<Encoded | null> {
    const marks = this.#marks;
    const groups: Group[] = [];
    const { pageSize } = this.#state;
    let { position, lastAt } = line;
    for (let pages = 0; marks[0] !== undefined && (all || pages < SEGMENT_PAGES); ) {
      const { at, frame } = marks[0];
      const maxPages = all ? Number.POSITIVE_INFINITY : SEGMENT_PAGES - pages;
      const read = await this.#wal.read(position, frame, { maxPages, pageSize });
      lastAt = Math.max(at, lastAt + 1);
      position = read.end;
      groups.push({ at: lastAt, images: read.images, size: read.size });
      pages += read.images.size;
      // Meanwhile it may have been joined with the next one.
      if (marks[0]?.frame === read.end.frame) marks.shift();
    }
    if (groups.length === 0) return null;
    const { generation, previous } = line;
    const number = line.number + 1;
    const segment = await encodeSegment(groups, { generation, number, previous, pageSize, end: position });
    Object.assign(line, { position, lastAt, number, previous: segment.name.sum });
    return segment;
  }

  /**
   * Observes the log after a checkpoint, before the next write. Returns whether all of it is in the database. Throws
   * WalChanged as `observe` does.
   */
  seal(): Promise<boolean> {
    return this.#inOrder(async () => {
      await this.#observe();
      const isWhole = this.#state.backfilled === this.#state.frames;
      this.#sealedAs = isWhole ? await this.#wal.databaseVersion() : null;
      return isWhole;
    });
  }

  /**
   * Whether `state` is of the log after the one that was observed to its end. If another program had appended to that one,
   * it must have copied the new frames to the database before the log could be restarted. A new log has random salts.
   */
  async #isNext(state: WalState): Promise<boolean> {
    const { salts, frames } = this.#state;
    if (this.#sealedAs === null || (frames > 0 && !follows(state.salts, salts))) return false;
    return (await this.#wal.databaseVersion()) === this.#sealedAs;
  }

  #inOrder<T>(work: () => Promise<T>): Promise<T> {
    const run = this.#last.then(work, work);
    this.#last = run.catch(() => {});
    return run;
  }
}

/** A restart of the log increments the first salt: two restarts between two observations would hide a whole log. */
const follows = (salts: string, previous: string) => firstOf(salts) === (firstOf(previous) + 1) >>> 0;
const firstOf = (salts: string) => Number.parseInt(salts.slice(0, 8), 16);

/** Joins each observation with the next one, under the earlier time. */
function halve(marks: Mark[]): void {
  const pairs = Array.from({ length: Math.ceil(marks.length / 2) }, (_, index): Mark => {
    const earlier = marks[index * 2] as Mark;
    return { at: earlier.at, frame: (marks[index * 2 + 1] ?? earlier).frame };
  });
  for (const [index, pair] of pairs.entries()) marks[index] = pair;
  marks.length = pairs.length;
}
