import type { InStatement, ResultSet, Value } from "@libsql/client";
import { LibsqlError } from "@libsql/core/api";
import { boundArgs, columnsOf, resultRow } from "./values.ts";

/**
 * The protocol of libSQL servers: the JSON of Hrana 3 (libsql's docs/HRANA_3_SPEC.md). libSQL's own client takes five
 * times as long for a statement, opens a connection for each, and cannot distinguish a lost COMMIT from a refused one.
 */
type WireValue =
  | { type: "null" }
  | { type: "integer"; value: string }
  | { type: "float"; value: number }
  | { type: "text"; value: string }
  | { type: "blob"; base64: string };

export type WireStatement = {
  sql: string;
  args?: WireValue[];
  named_args?: { name: string; value: WireValue }[];
};

type Condition = { type: "ok"; step: number } | { type: "is_autocommit" } | { type: "not"; cond: Condition };

export type Step = { stmt: WireStatement; condition?: Condition };
export type WireRequest =
  | { type: "execute"; stmt: WireStatement }
  | { type: "batch"; batch: { steps: Step[] } }
  | { type: "close" };

export type WireError = { message: string; code?: string | null };
export type WireResult = {
  cols: { name: string | null }[];
  rows: WireValue[][];
  affected_row_count: number;
  last_insert_rowid: string | null;
};
export type BatchResult = { step_results: (WireResult | null)[]; step_errors: (WireError | null)[] };

/** Bound as in a local database: an integer stays one. */
export function toWire(statement: InStatement): WireStatement {
  if (typeof statement === "string") return { sql: statement };
  const bound = boundArgs(statement.args);
  if (Array.isArray(bound)) return { sql: statement.sql, args: bound.map(toWireValue) };
  const named = Object.entries(bound).map(([name, value]) => ({ name, value: toWireValue(value) }));
  return { sql: statement.sql, named_args: named };
}

function toWireValue(value: null | string | number | bigint | Uint8Array): WireValue {
  if (value === null) return { type: "null" };
  if (typeof value === "string") return { type: "text", value };
  if (typeof value === "bigint") return { type: "integer", value: String(value) };
  if (typeof value === "number") return { type: "float", value };
  return { type: "blob", base64: Buffer.from(value.buffer, value.byteOffset, value.byteLength).toString("base64") };
}

/** Throws RangeError for an integer that a number cannot represent. */
export const toValues = ({ rows }: WireResult): Value[][] => rows.map((row) => row.map(toValue));

/** The same, with the names of columns. */
export function toResult(wire: WireResult): ResultSet {
  const { cols, affected_row_count, last_insert_rowid } = wire;
  const columns = columnsOf(cols.map(({ name }) => name ?? ""));
  const result = {
    columns: columns.all,
    columnTypes: [],
    rows: toValues(wire).map((row) => resultRow(row, columns)),
    rowsAffected: affected_row_count,
    lastInsertRowid: last_insert_rowid === null ? undefined : BigInt(last_insert_rowid),
  };
  return { ...result, toJSON: () => ({ ...result, lastInsertRowid: last_insert_rowid }) };
}

function toValue(value: WireValue): Value {
  switch (value.type) {
    case "null":
      return null;
    case "integer": {
      const number = Number(value.value);
      if (!Number.isSafeInteger(number))
        throw new RangeError(`The database returned ${value.value}, which is too large.`);
      return number;
    }
    case "blob":
      return Buffer.from(value.base64, "base64") as unknown as ArrayBuffer;
    default:
      return value.value;
  }
}

/** A server reports only SQLite's code, and only the basic one. */
export const toError = ({ message, code }: WireError) => new LibsqlError(message, code ?? "UNKNOWN");
