import type { Client } from "@libsql/client";
import type { LibSQLDatabase } from "drizzle-orm/libsql/driver-core";

declare module "drizzle-orm/libsql/driver-core" {
  /** Exported by the module but missing in its types. */
  export function construct<S extends Record<string, unknown>>(
    client: Client,
    config: { schema: S },
  ): LibSQLDatabase<S>;
}
