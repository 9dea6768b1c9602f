import { memoizeByObject } from "../../src/lib/memoize-by-object.ts";
import type { Db } from "./open.ts";

/** Calls `make` once per database handle: generating a statement's SQL costs three times its execution. */
export const prepared = <T extends object>(make: (db: Db) => T): ((db: Db) => T) => memoizeByObject(make);
