import { join } from "node:path";
import { databaseFile } from "#storage/db/open.ts";
import type { Config } from "./load.ts";

/** The path of the database; null when a remote libSQL server holds it. */
export const databaseFileOf = ({ data_dir, database_url }: Pick<Config, "data_dir" | "database_url">): string | null =>
  database_url === undefined ? join(data_dir, "vodbox.db") : databaseFile(database_url);
