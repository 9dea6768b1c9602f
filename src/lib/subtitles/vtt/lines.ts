/** Iterates over the lines of a text; CRLF, LF and CR end one (WebVTT, 4.1; SubRip files use all three). */
export class Lines {
  readonly source: string;
  /** Number of the current line; counted from `firstNumber`. */
  number: number;
  /** Start and end of the line in the source, without its terminator. */
  from = 0;
  to = 0;
  text = "";
  /** True after the last line. */
  ended = false;
  #next = 0;
  // Cached, because a search for a character that does not occur would read to the end for each line.
  #cr = -1;
  #lf = -1;

  constructor(source: string, firstNumber = 1) {
    this.source = source;
    this.number = firstNumber - 1;
    this.advance();
  }

  advance(): void {
    const { source } = this;
    if (this.#next > source.length) {
      this.ended = true;
      this.text = "";
      return;
    }
    this.from = this.#next;
    if (this.#cr < this.from) this.#cr = position(source, "\r", this.from);
    if (this.#lf < this.from) this.#lf = position(source, "\n", this.from);
    this.to = Math.min(this.#cr, this.#lf, source.length);
    this.#next = this.to + (this.#cr + 1 === this.#lf ? 2 : 1);
    this.text = source.slice(this.from, this.to);
    this.number++;
  }
}

function position(source: string, terminator: string, from: number): number {
  const at = source.indexOf(terminator, from);
  return at === -1 ? Number.POSITIVE_INFINITY : at;
}
