import { and, eq, lte } from "drizzle-orm";
import type { App } from "#app.ts";
import { randomName } from "#lib/base";
import { type ImportRow, imports } from "#storage/db/schema.ts";
import { sweepTemporaryFiles } from "../csv-file.ts";
import { applyJournal, dropJournal, ImportLost } from "./journal.ts";
import { STALE_MS, withImportLock } from "./lock.ts";

/**
 * Finishes imports of a killed process: a committed import is applied, another one is deleted. Called before the server
 * answers requests. Where other processes or servers share the database, their imports may be running, and
 * `finishStaleImports` finishes those that are not renewed.
 */
export async function recoverImports(app: App): Promise<void> {
  const { peers } = app;
  if (peers && !peers.isFirst) return;
  await sweepTemporaryFiles(app);
  await finish(app, app.commits() === null ? app.clock.now() - STALE_MS : Number.MAX_SAFE_INTEGER);
}

/** Finishes imports whose process was killed while others kept running. */
export const finishStaleImports = (app: App): Promise<void> => finish(app, app.clock.now() - STALE_MS);

async function finish(app: App, renewedUntil: number): Promise<void> {
  for (const row of await app.db.select().from(imports).where(lte(imports.renewedAt, renewedUntil)).all()) {
    const lock = await claimImport(app, row);
    if (!lock) continue;
    try {
      if (row.committedAt !== null) await applyJournal(app, lock);
      else await dropJournal(app, lock);
      await lock.release();
      const how = row.committedAt === null ? "rolled back" : "completed";
      app.log.warn({ import_id: row.id, tenant_id: row.tenantId }, `an interrupted import was ${how}`);
    } catch (error) {
      if (!(error instanceof ImportLost)) throw error;
    }
  }
}

/** Null when another process was faster, or the owner is alive. */
async function claimImport(app: App, { id, tenantId, owner }: ImportRow) {
  const newOwner = randomName(24);
  const claimed = await app.write(async (tx) =>
    tx
      .update(imports)
      .set({ owner: newOwner, renewedAt: app.clock.now() })
      .where(and(eq(imports.id, id), eq(imports.owner, owner)))
      .returning()
      .get(),
  );
  return claimed ? withImportLock(app, { id, tenantId, owner: newOwner }) : null;
}
