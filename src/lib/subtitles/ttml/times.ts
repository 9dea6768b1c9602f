import { type TtmlElement, TtmlFault } from "./tree.ts";

const CLOCK = /^(\d{2,5}):(\d{2}):(\d{2})(?:\.(\d{1,15})|:(\d{2,3})(?:\.(\d{1,3}))?)?$/;
const OFFSET = /^(\d{1,15}(?:\.\d{1,15})?)(h|ms|m|s|f|t)$/;
const SECONDS = { h: 3600, m: 60, s: 1, ms: 0.001 } as const;
const MAX_SECONDS = 99_999 * 3600;
const MINUTES_OF_TEN = 10;

const quote = (value: string) => `"${value.length > 40 ? `${value.slice(0, 40)}…` : value}"`;

/** Reads the times of a document by the parameters of its root (TTML 2, 7.2 and 12.3). */
export class TtmlClock {
  /** Frames that a second of a time expression counts. */
  readonly #frameRate: number;
  /** Frames in a second of media time: 29.97 where 30 are counted with a multiplier of 1000/1001. */
  readonly #effectiveRate: number;
  readonly #subFrameRate: number;
  readonly #tickRate: number;
  /** Whether labels count frames from zero, as in SMPTE ST 12, and how many each minute skips. */
  readonly #isSmpte: boolean;
  readonly #dropped: number;

  /** Throws TtmlFault for parameters that are malformed, and for times of a wall clock. */
  constructor({ attributes, line }: TtmlElement) {
    const refuse = (name: string, expected: string): never => {
      throw new TtmlFault(line, `ttp:${name}=${quote(attributes.get(`ttp:${name}`) ?? "")} must be ${expected}`);
    };
    const integer = (name: string): number | null => {
      const value = attributes.get(`ttp:${name}`)?.trim();
      if (value === undefined) return null;
      return /^0*[1-9]\d{0,9}$/.test(value) ? Number(value) : refuse(name, "a positive whole number");
    };
    const frameRate = integer("frameRate");
    this.#frameRate = frameRate ?? 30;
    this.#subFrameRate = integer("subFrameRate") ?? 1;
    // DFXP separates the numbers by a colon.
    const multiplier = attributes.get("ttp:frameRateMultiplier")?.trim() ?? "1 1";
    const [, numerator, denominator = "1"] =
      /^(0*[1-9]\d{0,8})(?:(?:\s{1,9}|:)(0*[1-9]\d{0,8}))?$/.exec(multiplier) ?? [];
    if (numerator === undefined) refuse("frameRateMultiplier", "two positive whole numbers, as in 1000 1001");
    this.#effectiveRate = (this.#frameRate * Number(numerator)) / Number(denominator);
    this.#tickRate = integer("tickRate") ?? (frameRate === null ? 1 : this.#effectiveRate * this.#subFrameRate);
    const base = attributes.get("ttp:timeBase")?.trim() ?? "media";
    if (base !== "media" && base !== "smpte")
      refuse("timeBase", "media or smpte; times of a wall clock do not relate to the video");
    this.#isSmpte = base === "smpte";
    const dropMode = attributes.get("ttp:dropMode")?.trim() ?? "nonDrop";
    if (!["nonDrop", "dropNTSC", "dropPAL"].includes(dropMode)) refuse("dropMode", "nonDrop, dropNTSC or dropPAL");
    this.#dropped = dropMode === "dropNTSC" ? 2 : dropMode === "dropPAL" ? 4 : 0;
  }

  /** Seconds of a time expression; a string describes the fault. */
  seconds(name: string, expression: string): number | string {
    const value = expression.trim();
    const found = this.#clockSeconds(value) ?? this.#offsetSeconds(value);
    if (typeof found === "string") return `${name}=${quote(value)}: ${found}`;
    if (found === null)
      return `${name}=${quote(value)} is not a time; write it as 00:00:01.500, 00:00:01:12, 1.5s or 45f`;
    return found <= MAX_SECONDS ? found : `${name}=${quote(value)} is too large`;
  }

  #clockSeconds(value: string): number | string | null {
    const match = CLOCK.exec(value);
    if (!match) return null;
    const [, hours, minutes, whole, fraction = "0", frames = "0", subFrames = "0"] = match;
    const minute = Number(minutes);
    const second = Number(whole);
    // A leap second has the number 60 (TTML 2, 12.3.1).
    if (minute > 59 || second > 60) return "minutes and seconds must be at most 59";
    const frame = Number(frames);
    if (frame >= this.#frameRate) return `the frame must be less than ttp:frameRate, ${this.#frameRate}`;
    const part = frame + Number(subFrames) / this.#subFrameRate;
    const total = (Number(hours) * 60 + minute) * 60 + second;
    if (!this.#isSmpte) return total + Number(`0.${fraction}`) + part / this.#effectiveRate;
    return (
      (total * this.#frameRate + part - this.#skipped(Number(hours) * 60 + minute)) / this.#effectiveRate +
      Number(`0.${fraction}`)
    );
  }

  /**
   * Frame labels that do not exist before a minute (TTML 2, I): two of each minute but every tenth with NTSC, four of
   * every second minute but every twentieth with PAL.
   */
  #skipped(minutes: number): number {
    if (this.#dropped === 4) {
      const pairs = Math.floor(minutes / 2);
      return this.#dropped * (pairs - Math.floor(pairs / MINUTES_OF_TEN));
    }
    return this.#dropped * (minutes - Math.floor(minutes / MINUTES_OF_TEN));
  }

  #offsetSeconds(value: string): number | null {
    const [, count, metric] = OFFSET.exec(value) ?? [];
    if (count === undefined) return null;
    if (metric === "f") return Number(count) / this.#effectiveRate;
    if (metric === "t") return Number(count) / this.#tickRate;
    return Number(count) * SECONDS[metric as keyof typeof SECONDS];
  }
}
