import type { InArgs, InValue, Row, Value } from "@libsql/client";

type Bound = null | string | number | bigint | Uint8Array;

/**
 * A value to bind with libsql. The native binding aborts the process on a boolean, silently stores NaN and undefined as
 * NULL, binds every number as REAL (so 5 is '5.0' in a text and 7 / 2 is 3.5), and truncates a text at its first NUL
 * when it is read: all of these are converted or refused.
 */
export function bound(value: InValue | undefined): Bound {
  switch (typeof value) {
    case "string":
      if (value.includes("\0")) throw new RangeError("A text for the database must not contain a NUL character.");
      return value;
    case "number":
      if (Number.isSafeInteger(value)) return BigInt(value);
      if (Number.isFinite(value)) return value;
      throw new RangeError(`The database cannot store the number ${value}.`);
    case "bigint":
      return value;
    case "boolean":
      return value ? 1n : 0n;
    default:
      if (value === null) return null;
      if (value instanceof Uint8Array) return value;
      if (value instanceof ArrayBuffer) return new Uint8Array(value);
      throw new TypeError(`The database cannot bind ${value === undefined ? "undefined" : "this kind of object"}.`);
  }
}

/** All arguments of a statement; positional ones in order, named ones without their prefix. */
export function boundArgs(args: InArgs | undefined): Bound[] | Record<string, Bound> {
  if (args === undefined) return [];
  if (Array.isArray(args)) return args.map(bound);
  return Object.fromEntries(Object.entries(args).map(([name, value]) => [name.replace(/^[:@$]/, ""), bound(value)]));
}

/** A statement's columns: every name, and for each distinct name the position of its first occurrence. */
export type Columns = { all: string[]; names: string[]; positions: number[]; hasNumber: boolean };

export function columnsOf(all: string[]): Columns {
  const names = [...new Set(all)];
  const hasNumber = names.some((name) => /^\d/.test(name));
  return { all, names, positions: names.map((name) => all.indexOf(name)), hasNumber };
}

/**
 * A row that is read by position (drizzle's mapped queries) and by name (its raw ones, which copy every enumerable
 * property). Positions are on the prototype, so a row is a single object: 76k prepared selects a second, compared with
 * 81k for bare arrays and 67k for @libsql/client's defined properties. Of two columns with one name the first wins, as
 * in @libsql/client.
 */
class PositionsAndNames {
  readonly #values: Value[];
  constructor(values: Value[], { names, positions, hasNumber }: Columns) {
    this.#values = values;
    const named = this as unknown as Record<string, Value>;
    for (let i = 0; i < names.length; i++) {
      const name = names[i] as string;
      const value = values[positions[i] as number] as Value;
      // `SELECT 1` names its column 1, which is a position on the prototype.
      if (hasNumber && name in this) Object.defineProperty(this, name, { value, enumerable: true });
      else named[name] = value;
    }
  }
  get length(): number {
    return this.#values.length;
  }
  static {
    // SQLite's own limit is 2,000 columns.
    for (let i = 0; i < 2000; i++) {
      Object.defineProperty(PositionsAndNames.prototype, i, {
        get(this: PositionsAndNames) {
          return this.#values[i];
        },
      });
    }
  }
}

export const resultRow = (values: Value[], columns: Columns) =>
  new PositionsAndNames(values, columns) as unknown as Row;
