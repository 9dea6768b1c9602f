import { and, eq, gt, lte } from "drizzle-orm";
import type { App } from "#app.ts";
import { removalHolds } from "#storage/db/schema.ts";

/** Renewed every tenth of it. A backup that was killed blocks deletions for no longer than this. */
export const HOLD_MS = 300_000;

type Hold = typeof removalHolds.$inferSelect;

/**
 * Whether a backup is copying objects: the objects that its rows reference must not be deleted. Checked after the
 * transaction that drops the references: a hold taken earlier is visible, and a database copy made later does not
 * contain them.
 */
export async function isDeletionHeld(app: App): Promise<boolean> {
  const live = gt(removalHolds.expiresAt, app.clock.now());
  return (await app.db.select({ id: removalHolds.id }).from(removalHolds).where(live).limit(1).get()) !== undefined;
}

export const takeHold = (app: App): Promise<Hold> =>
  app.write(async (tx) => {
    const now = app.clock.now();
    await tx.delete(removalHolds).where(lte(removalHolds.expiresAt, now));
    return tx
      .insert(removalHolds)
      .values({ expiresAt: now + HOLD_MS })
      .returning()
      .get();
  });

/** Undefined for an expired hold: its objects may be deleted. */
export const renewHold = (app: App, id: number): Promise<Hold | undefined> =>
  app.write(async (tx) => {
    const now = app.clock.now();
    return tx
      .update(removalHolds)
      .set({ expiresAt: now + HOLD_MS })
      .where(and(eq(removalHolds.id, id), gt(removalHolds.expiresAt, now)))
      .returning()
      .get();
  });

export const endHold = (app: App, id: number) =>
  app.write(async (tx) => tx.delete(removalHolds).where(eq(removalHolds.id, id)));
