import { sql } from "drizzle-orm";
import { requireFewerRows } from "#platform/limits/row-limit.ts";
import type { Db } from "#storage/db/open.ts";
import { type UserRow, users } from "#storage/db/schema.ts";

/** Users of a tenant. */
const MAX_USERS = 10_000;

/** The caller has made sure that no user has the email address. Throws 422 `user_limit_reached`. */
export async function insertUser(
  tx: Db,
  user: Pick<UserRow, "tenantId" | "emailAddress" | "passwordHash"> & Partial<Pick<UserRow, "name" | "role">>,
  now: number,
): Promise<UserRow> {
  await requireFewerRows(tx, {
    table: "users",
    where: sql`tenant_id = ${user.tenantId}`,
    max: MAX_USERS,
    code: "user_limit_reached",
    message: `A tenant has at most ${MAX_USERS} users; delete those that are no longer needed.`,
  });
  return tx
    .insert(users)
    .values({ ...user, createdAt: now, updatedAt: now })
    .returning()
    .get();
}
