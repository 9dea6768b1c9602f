import Table from "cli-table3";

const PLAIN = {
  top: "",
  "top-mid": "",
  "top-left": "",
  "top-right": "",
  bottom: "",
  "bottom-mid": "",
  "bottom-left": "",
  "bottom-right": "",
  left: "",
  "left-mid": "",
  mid: "",
  "mid-mid": "",
  right: "",
  "right-mid": "",
  middle: "  ",
};

export function line(text: string): void {
  process.stdout.write(`${text}\n`);
}
export function printJson(value: unknown): void {
  line(JSON.stringify(value, null, 2));
}

/** Control characters in what tenants wrote must not steer the operator's terminal. */
const clean = (value: unknown) =>
  (value === null || value === undefined ? "–" : String(value)).replaceAll(/\p{Cc}/gu, "�");

export type Column<R> = [title: string, value: (row: R) => unknown];

/** A table for people, or the rows as JSON. */
export function printList<R>(rows: readonly R[], columns: readonly Column<R>[], json: boolean): void {
  if (json) return printJson(rows);
  if (rows.length === 0) return line("None.");
  const table = new Table({
    head: columns.map(([title]) => title),
    chars: PLAIN,
    style: { head: [], border: [], "padding-left": 0, "padding-right": 0 },
  });
  for (const row of rows) table.push(columns.map(([, value]) => clean(value(row))));
  line(table.toString());
}

/** One record, a field a line, or as JSON. */
export function printRecord(record: Record<string, unknown>, json: boolean): void {
  if (json) return printJson(record);
  const width = Math.max(...Object.keys(record).map((key) => key.length));
  for (const [key, value] of Object.entries(record))
    line(`${key.padEnd(width)}  ${clean(Array.isArray(value) ? value.join(", ") : value)}`);
}
