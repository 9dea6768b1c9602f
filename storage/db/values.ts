import type { InArgs, InValue, Row, Value } from "@libsql/client";

type Bound = null | string | number | bigint | Uint8Array;

/**
 * A value as libsql binds it. The native binding aborts the whole process on a boolean, stores NaN and undefined as
 * NULL without a word, binds every number as REAL (so 5 is '5.0' in a text and 7 / 2 is 3.5), and cuts a text at
 * its first NUL when it is read back: none of that may pass.
 */
export function bound(value: InValue | undefined): Bound {
  switch (typeof value) {
    case "string":
      if (value.includes("\0")) throw new RangeError("A text for the database must not hold a NUL character.");
      return value;
    case "number":
      if (Number.isSafeInteger(value)) return BigInt(value);
      if (Number.isFinite(value)) return value;
      throw new RangeError(`The database cannot hold the number ${value}.`);
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

/** All arguments of a statement; positional ones stay in order, named ones lose their sigil. */
export function boundArgs(args: InArgs | undefined): Bound[] | Record<string, Bound> {
  if (args === undefined) return [];
  if (Array.isArray(args)) return args.map(bound);
  return Object.fromEntries(Object.entries(args).map(([name, value]) => [name.replace(/^[:@$]/, ""), bound(value)]));
}

/** A statement's columns: every name that it gives, and for each distinct one the position where it stands first. */
export type Columns = { all: string[]; names: string[]; positions: number[] };

export function columnsOf(all: string[]): Columns {
  const names = [...new Set(all)];
  return { all, names, positions: names.map((name) => all.indexOf(name)) };
}

/**
 * A row that is read both ways: by position (drizzle's mapped queries) and by name (its raw ones, which copy every
 * enumerable property). The positions sit on the prototype, so a row costs one object: 76k prepared selects a second
 * where bare arrays give 81k and @libsql/client's defined properties 67k. Of two columns with one name the first
 * wins, as in @libsql/client.
 */
class PositionsAndNames {
  readonly #values: Value[];
  constructor(values: Value[], { names, positions }: Columns) {
    this.#values = values;
    const named = this as unknown as Record<string, Value>;
    for (let i = 0; i < names.length; i++) named[names[i] as string] = values[positions[i] as number] as Value;
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
