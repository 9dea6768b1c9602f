import { oncePer } from "../../src/lib/once-per.ts";
import type { Db } from "./open.ts";

/** `make` once a database handle: building a statement's SQL costs three times what running it does. */
export const prepared = <T extends object>(make: (db: Db) => T): ((db: Db) => T) => oncePer(make);
