import { eq } from "drizzle-orm";
import type { App } from "#app.ts";
import type { Db } from "#storage/db/open.ts";
import { type UserRow, users } from "#storage/db/schema.ts";
import { isPassword } from "./passwords.ts";
import { requireSecondFactor } from "./second-factor.ts";

type Options<T> = {
  /** Throws: the same for an unknown user and a wrong password. */
  refuse: () => never;
  work: (tx: Db, user: UserRow) => Promise<T>;
};

/**
 * Runs `work` in a transaction for the user whose email address and password these are. Throws 401 `totp_required`, and
 * WrongCode, where the user has a second factor.
 */
export async function withUser<T>(
  app: App,
  { email, password, totp }: { email: string; password: string; totp?: string | undefined },
  { refuse, work }: Options<T>,
): Promise<T> {
  const known = await app.db.select().from(users).where(eq(users.emailAddress, email)).get();
  if (!(await isPassword(password, known?.passwordHash ?? null)) || !known) return refuse();
  return app.write(async (tx) => {
    // During hashing the user may have been deleted or changed the password.
    const user = await tx.select().from(users).where(eq(users.id, known.id)).get();
    if (user?.passwordHash !== known.passwordHash) return refuse();
    await requireSecondFactor(tx, app, user, totp);
    return work(tx, user);
  });
}
