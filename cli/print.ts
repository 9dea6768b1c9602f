import { styleText } from "node:util";
import Table from "cli-table3";
import { shownLine } from "#model/shown-text.ts";
import { amount, relative } from "./units.ts";

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

/** The address with which a browser sets up a new server; null for a server that has tenants. */
export function printSetupUrl(url: string | null): void {
  if (url !== null) line(`set up in a browser, once, within an hour: ${url}`);
}

export function printJson(value: unknown): void {
  line(JSON.stringify(value, null, 2));
}

/** Control characters in tenants' texts must not control the operator's terminal. */
export const plain = shownLine;

const clean = (value: unknown) => (value === null || value === undefined ? "–" : plain(String(value)));

const COLORS: [color: "green" | "yellow" | "red", states: readonly string[]][] = [
  ["green", ["active", "ready", "completed", "delivered", "ok", "live"]],
  ["yellow", ["queued", "running", "pending", "processing", "warning", "deleting", "skipped"]],
  ["red", ["suspended", "failed", "errored", "canceled", "FAULT"]],
];

/** A status, which is colored where the terminal shows colors (see NO_COLOR). */
export class State {
  readonly text: string;
  constructor(text: string) {
    this.text = text;
  }
}
export const state = (text: string): State => new State(text);

function cell(value: unknown): string {
  if (!(value instanceof State)) return clean(value);
  const [color] = COLORS.find(([, states]) => states.includes(value.text)) ?? [];
  return color ? styleText(color, clean(value.text), { stream: process.stdout }) : clean(value.text);
}

export type Column<R> = [title: string, value: (row: R) => unknown];

/** Prints a table, or the rows as JSON. */
export function printList<R>(rows: readonly R[], columns: readonly Column<R>[], json: boolean): void {
  if (json) return printJson(rows);
  if (rows.length === 0) return line("None.");
  const table = new Table({
    head: columns.map(([title]) => styleText("bold", title, { stream: process.stdout })),
    chars: PLAIN,
    style: { head: [], border: [], "padding-left": 0, "padding-right": 0 },
  });
  for (const row of rows) table.push(columns.map(([, value]) => cell(value(row))));
  line(table.toString());
}

/** Prints one record, a field per line with units, or as JSON with the exact values. */
export function printRecord(record: Record<string, unknown>, json: boolean): void {
  if (json) return printJson(record);
  const width = Math.max(...Object.keys(record).map((key) => key.length));
  for (const [key, value] of Object.entries(record)) line(`${key.padEnd(width)}  ${cell(field(key, value))}`);
}

/** A warning becomes its sentence for people. */
function inWords(one: unknown): unknown {
  if (one === null || typeof one !== "object") return one;
  return "message" in one ? one.message : JSON.stringify(one);
}

function field(key: string, value: unknown): unknown {
  if (key.endsWith("_bytes") && typeof value === "number") return amount(value);
  if (key.endsWith("_at") && relative(value) !== null) return `${value} (${relative(value)})`;
  if (key.endsWith("status") && typeof value === "string") return state(value);
  if (Array.isArray(value)) return value.length > 0 ? value.map(inWords).join(", ") : null;
  return value !== null && typeof value === "object" ? JSON.stringify(value) : value;
}
