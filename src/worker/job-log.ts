const MAX_LINES = 50;
const MAX_LINE_CHARS = 500;

/** The last lines of what a job reports while it runs. */
export class JobLog {
  readonly #lines: string[] = [];
  #sent = "";

  add(line: string): void {
    this.#lines.push(`${new Date().toISOString().slice(11, 19)} ${line.slice(0, MAX_LINE_CHARS)}`);
    if (this.#lines.length > MAX_LINES) this.#lines.shift();
  }

  /** The lines, if they are not those that were sent last; else null. */
  unsent(): string | null {
    const text = this.#lines.join("\n");
    return text === this.#sent ? null : text;
  }

  /** Records that the server has `text`. */
  markSent(text: string): void {
    this.#sent = text;
  }
}
