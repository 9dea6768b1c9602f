/** The lines of a text, one after another: CR LF, LF and CR end one (WebVTT, 4.1; SubRip files have all three). */
export class Lines {
  readonly source: string;
  /** Of the line that is looked at; counted from `firstNumber`. */
  number: number;
  /** Where it begins and ends in the source, its terminator apart. */
  from = 0;
  to = 0;
  text = "";
  /** True once there is no line left. */
  ended = false;
  #next = 0;
  // Remembered, since a search for what is not there would read to the end for each line.
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
