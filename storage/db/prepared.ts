import { memoizeByObject } from "../../src/lib/memoize-by-object.ts";
import type { Db } from "./open.ts";

/** `make` once a database handle: building a statement's SQL costs three times what running it does. */
export const prepared = <T extends object>(make: (db: Db) => T): ((db: Db) => T) => memoizeByObject(make);
