import { sql } from "drizzle-orm";
import type { TestApp } from "./app.ts";

/** What the rows of a tenant count as storage, next to its files. */
export async function databaseBytes({ opened }: Pick<TestApp, "opened">, tenantId: number): Promise<number> {
  const found = await opened.app.db.all<{ bytes: number }>(
    sql`SELECT database_bytes AS bytes FROM tenants WHERE id = ${tenantId}`,
  );
  return found[0]?.bytes ?? 0;
}
