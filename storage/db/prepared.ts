import { type Placeholder, sql } from "drizzle-orm";
import { memoizeByObject } from "#lib/base";
import type { Db } from "./open.ts";

/** Calls `make` once per database handle: generating a statement's SQL costs three times its execution. */
export const prepared = <T extends object>(make: (db: Db) => T): ((db: Db) => T) => memoizeByObject(make);

/** A placeholder for each argument that is present. */
export type Given<Name extends string> = { readonly [K in Name]: Placeholder | undefined };
export type Arguments<Name extends string> = { readonly [K in Name]?: unknown } & Readonly<Record<string, unknown>>;
type Prepared<All, Get> = {
  all(args: Record<string, unknown>): Promise<All>;
  get(args: Record<string, unknown>): Promise<Get>;
};

/** Combinations of arguments that are kept for one query; clients choose them. */
const MAX_COMBINATIONS = 100;

export type PreparedFor<Name extends string, All, Get = unknown> = {
  (db: Db, args: Arguments<Name>): { all(): Promise<All>; get(): Promise<Get> };
  /** Differs for each query of the program. */
  readonly id: number;
};
let queries = 0;

/**
 * `prepared` for a query with optional conditions: calls `make` once for each combination of arguments that are not
 * undefined. Placeholders are sent as they are, without the encoder of a column.
 */
export function preparedFor<Name extends string, All, Get>(
  make: (db: Db, given: Given<Name>) => Prepared<All, Get>,
): PreparedFor<Name, All, Get> {
  const ofHandle = memoizeByObject((_: Db) => new Map<string, Prepared<All, Get>>());
  const queryFor = (db: Db, args: Arguments<Name>) => {
    const combinations = ofHandle(db);
    let key = "";
    for (const name in args) if (args[name] !== undefined) key += `${name} `;
    let query = combinations.get(key);
    if (query === undefined) {
      const names = Object.keys(args).filter((name) => args[name] !== undefined);
      const placeholders = names.map((name) => [name, sql.placeholder(name)] as const);
      query = make(db, Object.fromEntries(placeholders) as Given<Name>);
      if (combinations.size >= MAX_COMBINATIONS) combinations.clear();
      combinations.set(key, query);
    }
    const found = query;
    return { all: () => found.all(args), get: () => found.get(args) };
  };
  return Object.assign(queryFor, { id: queries++ });
}
