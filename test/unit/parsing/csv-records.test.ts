import { parse } from "csv-parse/sync";
import { describe, expect, test } from "vitest";
import { readCsvPiece } from "#platform/parsing/csv-records.ts";
import { DOCUMENT_LIMITS, TooComplex } from "#src/lib/base/document-limits.ts";
import { fc } from "#test/support/property.ts";

/** Reads like the import, in pieces of `size` bytes that grow when they contain no record. */
function readAll(text: string | Uint8Array, size = 64) {
  const bytes = typeof text === "string" ? Buffer.from(text) : text;
  const records: string[][] = [];
  let length = size;
  for (let at = 0; ; ) {
    const isLast = at + length >= bytes.length;
    const piece = { bytes: bytes.subarray(at, at + length), isFirst: at === 0, isLast };
    const { records: found, consumed, unreadable } = readCsvPiece(piece);
    if (unreadable !== null) return unreadable;
    records.push(...found);
    if (isLast) return records;
    length = consumed === 0 ? length * 2 : size;
    at += consumed;
  }
}

describe("records of CSV", () => {
  test("equal those of another parser, wherever the pieces end", () => {
    const cell = fc.oneof(
      fc.string({ unit: "binary", maxLength: 20 }),
      fc.constantFrom("", '"', '""', ",", "\n", "\r\n", "\r", "é", "\u{1f600}", "a,b"),
    );
    const quote = (value: string) => (/[",\r\n]/.test(value) ? `"${value.replaceAll('"', '""')}"` : value);
    const row = fc.array(cell, { minLength: 1, maxLength: 6 });
    const input = fc.tuple(fc.array(row, { maxLength: 12 }), fc.constantFrom("\n", "\r\n"), fc.boolean(), fc.boolean());
    fc.assert(
      fc.property(input, fc.integer({ min: 4, max: 200 }), ([rows, end, hasEnd, hasBom], size) => {
        const lines = rows.map((cells) => cells.map(quote).join(",")).join(end);
        const text = (hasBom ? "\ufeff" : "") + lines + (hasEnd && rows.length > 0 ? end : "");
        const expected = parse(text, { bom: true, relax_column_count: true, record_delimiter: [end] });
        expect(readAll(text, size)).toEqual(expected);
      }),
      { numRuns: 3000 },
    );
  });

  test("may end in CR as well, and without a line ending", () => {
    expect(readAll("a,b\rc,\r")).toEqual([
      ["a", "b"],
      ["c", ""],
    ]);
    expect(readAll("a,b\nc,")).toEqual([
      ["a", "b"],
      ["c", ""],
    ]);
    expect(readAll("")).toEqual([]);
    expect(readAll("a\n\nb\n")).toEqual([["a"], [""], ["b"]]);
  });

  test.each(['a"b\n', '"a"b\n', '"a', '"a""', 'x,"', '"a" ,b'])("are not parsed from %j", (text) => {
    expect(readAll(text)).toMatch(/not valid CSV/);
  });

  test("are UTF-8", () => {
    expect(readAll(Buffer.from("a,\xfc\n", "latin1"))).toBe("it is not UTF-8");
    expect(readAll(Buffer.from([0x61, 0x0a, 0xc3]))).toBe("it is not UTF-8");
  });

  test("have limits", () => {
    const wide = ",".repeat(DOCUMENT_LIMITS.csvColumns);
    expect(() => readAll(`${wide}\n`, 4096)).toThrow(TooComplex);
    expect(readAll(`${wide.slice(1)}\n`, 4096)).toHaveLength(1);
    expect(() => readAll(`"${"x".repeat(DOCUMENT_LIMITS.csvRowBytes + 10)}"\n`, 256 * 1024)).toThrow(TooComplex);
    expect(() => readAll(`a\n"${"x".repeat(5 * DOCUMENT_LIMITS.csvRowBytes)}`, 256 * 1024)).toThrow(TooComplex);
  });
});
