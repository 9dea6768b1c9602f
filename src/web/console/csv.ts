import { saveFile } from "./save-file.ts";

/** Text that a spreadsheet would execute as a formula, as in the API's CSV export. */
const FORMULA = /^'*[=+\-@\t\r]/;

const cell = (value: string | number | null): string => {
  if (value === null) return "";
  if (typeof value === "number") return String(value);
  const text = FORMULA.test(value) ? `'${value}` : value;
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
};

/** Saves a table as a CSV file (RFC 4180) with a header. */
export function downloadCsv(filename: string, rows: readonly (readonly (string | number | null)[])[]): void {
  const text = rows.map((row) => `${row.map(cell).join(",")}\r\n`).join("");
  saveFile(filename, "text/csv", text);
}
