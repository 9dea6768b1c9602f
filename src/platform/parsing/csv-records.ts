import { DOCUMENT_LIMITS, requireAtMost, TooComplex } from "#lib/base";

export type CsvPiece = {
  /** Starts at the beginning of a record. */
  bytes: Uint8Array;
  isFirst: boolean;
  /** The last piece. */
  isLast: boolean;
};

export type CsvRecords = {
  records: string[][];
  /** Length of the records in bytes, with the byte order mark; the next piece begins after them. */
  consumed: number;
  /** Why the rest of the piece is not CSV in UTF-8; null when it is. */
  unreadable: string | null;
};

const QUOTE = 0x22;
const COMMA = 0x2c;
const LF = 0x0a;
const CR = 0x0d;
const BOM = [0xef, 0xbb, 0xbf];

/**
 * The complete records of a piece of a CSV file: RFC 4180 in UTF-8, with CRLF, LF or CR line endings. Rows may differ
 * in their number of cells; an empty line is a row with one empty cell. A quote inside an unquoted cell, or after the
 * end of a quoted one, is a fault. Linear in the bytes of the piece. Throws TooComplex for a record beyond the limits.
 * A piece larger than `csvRowBytes` contains a complete record, so a reader always advances.
 */
export function readCsvPiece({ bytes, isFirst, isLast }: CsvPiece): CsvRecords {
  const from = isFirst && BOM.every((byte, index) => bytes[index] === byte) ? BOM.length : 0;
  const scan = new Scan(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength), from, isLast);
  const records: string[][] = [];
  let consumed = from;
  let unreadable: string | null = null;
  while (unreadable === null && scan.at < bytes.length) {
    const record = scan.record();
    if (record === "incomplete") {
      if (scan.at - consumed > DOCUMENT_LIMITS.csvRowBytes) throw tooLong();
      break;
    }
    if (typeof record === "string") unreadable = record;
    else {
      if (scan.at - consumed > DOCUMENT_LIMITS.csvRowBytes) throw tooLong();
      records.push(record);
      consumed = scan.at;
    }
  }
  try {
    // Checked beyond the records too, where a fault was found: text that is not UTF-8 is rarely valid CSV.
    const checked = unreadable === null && !isLast ? bytes.subarray(0, consumed) : bytes;
    new TextDecoder("utf-8", { fatal: true }).decode(checked, { stream: !isLast });
  } catch {
    return { records: [], consumed, unreadable: "it is not UTF-8" };
  }
  return { records, consumed, unreadable };
}

const tooLong = () => new TooComplex(`A row has over ${DOCUMENT_LIMITS.csvRowBytes} bytes.`);

/** Delimiters are ASCII, which no byte of a longer UTF-8 sequence is, so bytes are scanned without decoding. */
class Scan {
  at: number;
  readonly #bytes: Buffer;
  readonly #isLast: boolean;

  constructor(bytes: Buffer, from: number, isLast: boolean) {
    this.#bytes = bytes;
    this.at = from;
    this.#isLast = isLast;
  }

  /** The record at `at`; `incomplete` when the piece ends in it; else the fault. */
  record(): string[] | string {
    const cells: string[] = [];
    for (;;) {
      const cell = this.#bytes[this.at] === QUOTE ? this.#quoted() : this.#plain();
      if (cell === null) return "incomplete";
      if (typeof cell !== "string") return cell.fault;
      cells.push(cell);
      requireAtMost(cells.length, DOCUMENT_LIMITS.csvColumns, "columns");
      const next = this.#bytes[this.at];
      if (next === undefined) return this.#isLast ? cells : "incomplete";
      this.at++;
      if (next === COMMA) continue;
      if (next === CR) {
        // The next piece may begin with its LF.
        if (this.at === this.#bytes.length && !this.#isLast) return "incomplete";
        if (this.#bytes[this.at] === LF) this.at++;
      }
      return cells;
    }
  }

  #plain(): string | { fault: string } | null {
    const start = this.at;
    for (; this.at < this.#bytes.length; this.at++) {
      const byte = this.#bytes[this.at];
      if (byte === COMMA || byte === LF || byte === CR) break;
      if (byte === QUOTE) return { fault: "it is not valid CSV: a quote is inside a cell that is not quoted" };
    }
    return this.#bytes.toString("utf8", start, this.at);
  }

  #quoted(): string | { fault: string } | null {
    const start = ++this.at;
    let hasQuotes = false;
    for (;;) {
      const end = this.#bytes.indexOf(QUOTE, this.at);
      if (end === -1) {
        this.at = this.#bytes.length;
        return this.#isLast ? { fault: "it is not valid CSV: a quote is not closed" } : null;
      }
      this.at = end + 1;
      const next = this.#bytes[this.at];
      if (next === QUOTE) {
        hasQuotes = true;
        this.at++;
        continue;
      }
      if (next === undefined && !this.#isLast) return null;
      if (next !== undefined && next !== COMMA && next !== LF && next !== CR)
        return { fault: "it is not valid CSV: a quoted cell does not end at a comma or a line end" };
      const text = this.#bytes.toString("utf8", start, end);
      return hasQuotes ? text.replaceAll('""', '"') : text;
    }
  }
}
