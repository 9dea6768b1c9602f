import { lte } from "drizzle-orm";
import type { App } from "#app.ts";
import { sessions } from "#storage/db/schema.ts";

/** Deletes expired sessions. */
export async function pruneSessions(app: App): Promise<void> {
  const expired = lte(sessions.expiresAt, app.clock.now());
  if (!(await app.db.select({ id: sessions.id }).from(sessions).where(expired).limit(1).get())) return;
  await app.write((tx) => tx.delete(sessions).where(expired));
}
