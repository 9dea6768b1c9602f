import { and, eq, ne } from "drizzle-orm";
import { HttpError, invalid, notFound } from "#lib/base";
import type { Role } from "#model/enums.ts";
import { type Caller, ownedBy } from "#platform/http/caller.ts";
import type { Db } from "#storage/db/open.ts";
import { type UserRow, users } from "#storage/db/schema.ts";

/** A user whom the caller may see. Throws 404. */
export const requireUser = async (db: Db, caller: Caller, id: number): Promise<UserRow> =>
  (await db
    .select()
    .from(users)
    .where(and(eq(users.id, id), ownedBy(caller, users.tenantId)))
    .get()) ?? notFound("user");

/** E-mail addresses are unique in all tenants, because people sign in without naming one. Throws 422. */
export async function requireFreeEmail(tx: Db, email: string, userId?: number): Promise<void> {
  const other = userId === undefined ? undefined : ne(users.id, userId);
  const taken = tx
    .select({ id: users.id })
    .from(users)
    .where(and(eq(users.emailAddress, email), other));
  if (await taken.get()) invalid("email", "is taken");
}

/** Throws 409 when `user` would be the tenant's last admin, and loses the role, or is deleted (null). */
export async function keepAnAdmin(tx: Db, user: UserRow, role: Role | null): Promise<void> {
  if (user.role !== "admin" || role === "admin") return;
  const others = and(eq(users.tenantId, user.tenantId), eq(users.role, "admin"), ne(users.id, user.id));
  if (await tx.select({ id: users.id }).from(users).where(others).limit(1).get()) return;
  throw new HttpError(
    409,
    "last_admin",
    "This user is the only admin of the tenant; make another user an admin first.",
  );
}
