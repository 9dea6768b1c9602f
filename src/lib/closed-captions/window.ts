/** A window of CEA-708 (ANSI/CTA-708-E, 8.4): rows of characters, in which a pen writes. */

/** Fields of `DefineWindow`, as they are sent. */
export type WindowDefinition = {
  isVisible: boolean;
  rows: number;
  columns: number;
  /** Whether the position is in percent, rather than in cells of 75 rows. */
  isRelative: boolean;
  vertical: number;
  /** 0 to 8: top left to bottom right. */
  anchor: number;
};

const SCREEN_ROWS = 15;
const CELLS = { relative: 100, absolute: 75 };

export class CaptionWindow {
  isVisible = false;
  #definition: WindowDefinition | null = null;
  #lines: string[][] = [];
  #row = 0;
  #column = 0;

  /** Keeps the text of a window that is defined again, where it fits. */
  define(definition: WindowDefinition): void {
    const isNew = this.#definition === null;
    this.#definition = definition;
    this.isVisible = definition.isVisible;
    this.#lines = Array.from({ length: definition.rows }, (_, row) =>
      (this.#lines[row] ?? []).slice(0, definition.columns),
    );
    if (isNew) this.moveTo(0, 0);
  }

  clear(): void {
    for (const line of this.#lines) line.length = 0;
  }

  moveTo(row: number, column: number): void {
    this.#row = row;
    this.#column = column;
  }

  /** A character beyond the window is left out. */
  write(character: string): void {
    const line = this.#lines[this.#row];
    if (!line || this.#column >= (this.#definition?.columns ?? 0)) return;
    while (line.length < this.#column) line.push(" ");
    line[this.#column++] = character;
  }

  backspace(): void {
    this.#column = Math.max(0, this.#column - 1);
    this.#lines[this.#row]?.splice(this.#column, 1);
  }

  /** To the next row; in the last one all rows move up. */
  nextRow(): void {
    this.#column = 0;
    if (this.#row + 1 < this.#lines.length) this.#row++;
    else if (this.#lines.length > 0) this.#lines = [...this.#lines.slice(1), []];
  }

  eraseRow(): void {
    this.#column = 0;
    this.#lines[this.#row]?.splice(0);
  }

  /** Rows with text, and that of the first one on the screen, 0 to 14; null where nothing is shown. */
  shown(): { rows: string[]; row: number } | null {
    if (!this.isVisible || this.#definition === null) return null;
    const texts = this.#lines.map((line) => line.join("").trim());
    const first = texts.findIndex((text) => text !== "");
    if (first < 0) return null;
    const { isRelative, vertical, anchor } = this.#definition;
    const at = (vertical / (isRelative ? CELLS.relative : CELLS.absolute)) * SCREEN_ROWS;
    const above = (texts.length * Math.floor(Math.min(anchor, 8) / 3)) / 2;
    const row = Math.round(at - above) + first;
    return { rows: texts.filter((text) => text !== ""), row: Math.min(SCREEN_ROWS - 1, Math.max(0, row)) };
  }
}
