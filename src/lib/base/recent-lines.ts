/** A line of the log, numbered from 1 in each process. */
export type NumberedLine = { number: number; text: string };

const MAX_LINES = 1000;
/** Characters that are kept in all, and of one line. */
const MAX_TOTAL = 1_000_000;
const MAX_LINE = 8000;

/** The newest lines of a log, within fixed bounds. A destination for Pino. */
export class RecentLines {
  #lines: NumberedLine[] = [];
  #characters = 0;
  #last = 0;

  /** One line of JSON with its line break. */
  write(text: string): void {
    const line = { number: ++this.#last, text: text.length > MAX_LINE ? shortened(text) : text.trimEnd() };
    this.#lines.push(line);
    this.#characters += line.text.length;
    // In batches: removing the first of many elements moves all others.
    if (this.#lines.length < 2 * MAX_LINES && this.#characters < 2 * MAX_TOTAL) return;
    let from = Math.max(0, this.#lines.length - MAX_LINES);
    let characters = this.#lines.slice(from).reduce((sum, { text: { length } }) => sum + length, 0);
    for (; characters > MAX_TOTAL; from++) characters -= (this.#lines[from] as NumberedLine).text.length;
    this.#lines = this.#lines.slice(from);
    this.#characters = characters;
  }

  get last(): number {
    return this.#last;
  }

  /** At most `limit` lines behind number `after`: the newest ones, oldest first. */
  after(after: number, limit: number): NumberedLine[] {
    const first = this.#lines[0]?.number ?? 0;
    return this.#lines.slice(Math.max(0, after + 1 - first, this.#lines.length - limit));
  }
}

/** Still JSON, with level, time and message. */
function shortened(text: string): string {
  const { level, time, msg } = JSON.parse(text) as Record<string, unknown>;
  return JSON.stringify({ level, time, msg: String(msg).slice(0, MAX_LINE / 2), shortened: true });
}
