import { eq } from "drizzle-orm";
import type { Db } from "../../../storage/db/open.ts";
import { type UserRow, users } from "../../../storage/db/schema.ts";
import type { App } from "../../app.ts";
import { isPassword } from "./passwords.ts";

type Options<T> = {
  /** Throws: the same for an unknown user and a wrong password. */
  refuse: () => never;
  work: (tx: Db, user: UserRow) => Promise<T>;
};

/** Runs `work` in a transaction for the user whose email address and password these are. */
export async function withUser<T>(
  app: App,
  { email, password }: { email: string; password: string },
  { refuse, work }: Options<T>,
): Promise<T> {
  const known = await app.db.select().from(users).where(eq(users.emailAddress, email)).get();
  if (!(await isPassword(password, known?.passwordHash ?? null)) || !known) return refuse();
  return app.write(async (tx) => {
    // During hashing the user may have been deleted or changed the password.
    const user = await tx.select().from(users).where(eq(users.id, known.id)).get();
    return user?.passwordHash === known.passwordHash ? work(tx, user) : refuse();
  });
}
