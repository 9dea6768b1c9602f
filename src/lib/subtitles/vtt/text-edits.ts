/** A line of a text: its offsets without the terminator, `to` exclusive, and its number from 1. */
type Line = { from: number; to: number; number: number; raw: string };
/** `lines` is how many lines the edit adds; negative for removed ones. */
type Edit = { from: number; to: number; text: string; line: number; lines: number };

/** Edits of a text, line by line in its order. What is not edited stays as it is, with its own line terminators. */
export class TextEdits {
  readonly #source: string;
  readonly #edits: Edit[] = [];
  /** Where lines are being removed from; a line that is kept ends it. */
  #removing: Pick<Line, "from" | "number"> | null = null;
  /** Whether the last line that is kept is blank. */
  endsBlank = true;
  /** That of the first line, for new lines. */
  readonly terminator: string;

  constructor(source: string) {
    this.#source = source;
    this.terminator = /\r\n|\n|\r/.exec(source)?.[0] ?? "\n";
  }

  remove({ from, number }: Line): void {
    this.#removing ??= { from, number };
  }

  /** Null removes the line. A text of several lines has `terminator` between them. */
  keep(line: Line, text: string | null): void {
    if (text === null) {
      this.remove(line);
      return;
    }
    this.#endRemoval(line.from, line.number);
    this.endsBlank = text === "";
    if (text === line.raw) return;
    const lines = text.split(this.terminator).length - 1;
    this.#edits.push({ from: line.from, to: line.to, text, line: line.number, lines });
  }

  /** Inserts a blank line, unless the lines before end with one. The line is kept next. */
  requireBlankBefore({ from, number }: Line): void {
    this.#endRemoval(from, number);
    if (this.endsBlank) return;
    this.#edits.push({ from, to: from, text: this.terminator, line: number, lines: 1 });
    this.endsBlank = true;
  }

  #endRemoval(to: number, line: number): void {
    if (!this.#removing) return;
    const { from, number } = this.#removing;
    this.#removing = null;
    this.#edits.push({ from, to, text: "", line: number, lines: number - line });
  }

  /** `line` is the number of lines of the source. Also returns the line of the source for a line of the text. */
  finish(line: number): { text: string; sourceLine(line: number): number } {
    this.#endRemoval(this.#source.length, line + 1);
    const edits = this.#edits;
    if (edits.length === 0) return { text: this.#source, sourceLine: (number) => number };
    const pieces: string[] = [];
    let done = 0;
    for (const { from, to, text } of edits) {
      pieces.push(this.#source.slice(done, from), text);
      done = to;
    }
    pieces.push(this.#source.slice(done));
    return { text: pieces.join(""), sourceLine: (number) => sourceLine(edits, number) };
  }
}

function sourceLine(edits: readonly Edit[], line: number): number {
  let added = 0;
  for (const edit of edits) {
    const first = edit.line + added;
    if (line < first) break;
    if (edit.lines > 0 && line <= first + edit.lines) return edit.line;
    added += edit.lines;
  }
  return line - added;
}
