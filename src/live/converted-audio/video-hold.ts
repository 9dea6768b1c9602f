import { setInterval } from "#lib/base";

/** What an encoder holds at most when the machine is not busy. */
const USUAL_MS = 250;
/** A longer step of audio is another clock, or a gap, which begins another encoder. */
const LONG_STEP_MS = 2000;
/** How long video waits. Then it does not, until the encoder is less than RESUME_MS behind. */
const MAX_WAIT_MS = 5000;
/** On a busy machine, an encoder may stay one or two seconds behind: video that does not wait for it has no audio at all. */
const RESUME_MS = 2500;
const CHECK_MS = 500;
const MAX_BYTES = 16 * 2 ** 20;

type Item = { ms: number; bytes: number; emit: () => void };
type Waiting = Item & { since: number };

/**
 * Holds video while the encoder of audio is behind, as on a busy machine when it starts: a segment that ends before its audio is
 * there has silence in its place. All times are milliseconds on one clock without wraps.
 */
export class VideoHold {
  readonly #onError: (error: Error) => void;
  #waiting: Waiting[] = [];
  #bytes = 0;
  #timer: ReturnType<typeof setInterval> | null = null;
  #pushedMs: number | null = null;
  #encodedMs = 0;
  #hasGivenUp = false;

  /** `onError`: for what `emit` of `add` throws later. */
  constructor(onError: (error: Error) => void) {
    this.#onError = onError;
  }

  /** Audio of this time was given to the encoder. */
  audioPushed(ms: number): void {
    if (this.#pushedMs === null || Math.abs(ms - this.#pushedMs) > LONG_STEP_MS) this.#encodedMs = ms;
    this.#pushedMs = ms;
  }

  /** Audio of this time was passed on. */
  audioEncoded(ms: number): void {
    this.#encodedMs = ms;
    if (!this.#isBehind(RESUME_MS)) this.#hasGivenUp = false;
    this.#release();
  }

  /** A sample or a configuration of video, in order. `emit` is called at once, and its errors are thrown, unless it waits. */
  add({ ms, bytes, emit }: Item): void {
    if (this.#waiting.length === 0 && !this.#mustWait(ms)) return emit();
    this.#waiting.push({ ms, bytes, emit, since: performance.now() });
    this.#bytes += bytes;
    this.#timer ??= setInterval(() => this.#check(), CHECK_MS);
    this.#check();
  }

  /** Nothing waits any longer: the audio has ended, or it needs no encoder. */
  flush(): void {
    this.#pushedMs = null;
    this.#release();
  }

  /** Drops what waits. */
  close(): void {
    if (this.#timer) clearInterval(this.#timer);
    this.#timer = null;
    this.#waiting = [];
    this.#bytes = 0;
  }

  #check(): void {
    const [first] = this.#waiting;
    if (!first || (performance.now() - first.since < MAX_WAIT_MS && this.#bytes <= MAX_BYTES)) return;
    this.#hasGivenUp = true;
    this.#release();
  }

  #isBehind(ms: number): boolean {
    return this.#pushedMs !== null && this.#pushedMs - this.#encodedMs > ms;
  }

  #mustWait(ms: number): boolean {
    return !this.#hasGivenUp && ms > this.#encodedMs && this.#isBehind(USUAL_MS);
  }

  #release(): void {
    const kept = this.#waiting.findIndex(({ ms }) => this.#mustWait(ms));
    const released = this.#waiting.splice(0, kept === -1 ? this.#waiting.length : kept);
    if (this.#waiting.length === 0 && this.#timer) {
      clearInterval(this.#timer);
      this.#timer = null;
    }
    try {
      for (const { bytes, emit } of released) {
        this.#bytes -= bytes;
        emit();
      }
    } catch (error) {
      this.#onError(error as Error);
    }
  }
}
