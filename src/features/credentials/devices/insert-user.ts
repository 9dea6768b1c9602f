import type { Db } from "#storage/db/open.ts";
import { type UserRow, users } from "#storage/db/schema.ts";

/** The caller has made sure that no user has the email address. */
export const insertUser = (
  tx: Db,
  user: Pick<UserRow, "tenantId" | "emailAddress" | "passwordHash"> & Partial<Pick<UserRow, "name" | "role">>,
  now: number,
): Promise<UserRow> =>
  tx
    .insert(users)
    .values({ ...user, createdAt: now, updatedAt: now })
    .returning()
    .get();
