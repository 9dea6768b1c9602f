import { and, eq, isNull, notExists, or } from "drizzle-orm";
import type { App } from "#app.ts";
import { HttpError, randomName, setInterval } from "#lib/base";
import { importRows, imports } from "#storage/db/schema.ts";

const RENEW_MS = 10_000;
/** An import that was not renewed for this long belongs to a dead process. */
export const STALE_MS = 60_000;

/** The import of a tenant that this process runs. */
export type ImportLock = {
  readonly id: number;
  readonly tenantId: number;
  readonly owner: string;
  /**
   * Allows the next import of the tenant. An import that is committed and not applied keeps its row until it is
   * applied.
   */
  release(): Promise<void>;
};

/**
 * Acquires the tenant's import lock, which is valid for all processes and servers on the database. Throws 409
 * `import_in_progress` while another import of the tenant runs.
 */
export async function lockImport(app: App, tenantId: number): Promise<ImportLock> {
  const owner = randomName(24);
  const row = await app.write(async (tx) => {
    const now = app.clock.now();
    const values = { tenantId, owner, renewedAt: now, createdAt: now };
    return tx.insert(imports).values(values).onConflictDoNothing().returning().get();
  });
  if (!row)
    throw new HttpError(
      409,
      "import_in_progress",
      "Another import of this tenant is in progress; retry when it has completed.",
    );
  return withImportLock(app, { id: row.id, tenantId, owner });
}

/** Renews the lock until it is released. */
export function withImportLock(
  app: App,
  { id, tenantId, owner }: Pick<ImportLock, "id" | "tenantId" | "owner">,
): ImportLock {
  const ownImport = and(eq(imports.id, id), eq(imports.owner, owner));
  const renew = () =>
    app
      .write(async (tx) => void (await tx.update(imports).set({ renewedAt: app.clock.now() }).where(ownImport)))
      .catch((error) => app.log.warn({ err: error, import_id: id }, "the lock of an import could not be renewed"));
  const timer = setInterval(renew, RENEW_MS).unref();
  return {
    id,
    tenantId,
    owner,
    async release() {
      clearInterval(timer);
      await app.write(async (tx) => {
        const rest = tx.select({ row: importRows.row }).from(importRows).where(eq(importRows.importId, id)).limit(1);
        await tx.delete(imports).where(and(ownImport, or(isNull(imports.committedAt), notExists(rest))));
      });
    },
  };
}
