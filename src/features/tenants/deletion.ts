import { and, asc, eq, inArray, isNotNull, isNull } from "drizzle-orm";
import type { App } from "#app.ts";
import { HttpError } from "#lib/base";
import { tenantPrefix } from "#model/object-keys.ts";
import { scheduleDeletion } from "#platform/http/object-gc.ts";
import { isDeletionHeld } from "#platform/http/removal-hold.ts";
import { afterCommit } from "#storage/db/after-commit.ts";
import type { Db } from "#storage/db/open.ts";
import { type TenantRow, tenants } from "#storage/db/schema.ts";
import { abortUploadsUnder } from "#storage/objects/abort-uploads.ts";
import { deletePrefix } from "#storage/objects/delete-prefix.ts";
import { deleteTenantRows } from "./tenant-rows.ts";

/** Longer than any URL that was signed for an object of the tenant: what is stored with one later is deleted then. */
const LATE_MS = 26 * 3_600_000;

/*
 * The request only records a deletion, which disables the tenant at once. A scheduled task then deletes rows and objects
 * in short steps, and the tenant's own row last; after a crash it starts again with what is left.
 */

/**
 * Records in the transaction that the tenant is to be deleted; repeatable. Its keys, tokens and URLs stop working at
 * once. Throws 422 `confirmation_required` when `confirm` is not its slug.
 */
export async function requestDeletion(
  tx: Db,
  app: App,
  { id, slug }: TenantRow,
  confirm: string | undefined,
): Promise<void> {
  if (confirm !== slug)
    throw new HttpError(
      422,
      "confirmation_required",
      `confirm: must be the tenant's slug, ${slug}. Everything that belongs to the tenant is deleted.`,
      { details: { confirm: [`must be ${slug}`] } },
    );
  const now = app.clock.now();
  await tx
    .update(tenants)
    .set({ status: "suspended", deleteRequestedAt: now, updatedAt: now })
    .where(and(eq(tenants.id, id), isNull(tenants.deleteRequestedAt)));
  afterCommit(tx, () => void app.signals.emit("tenant.deleting"));
}

/** The ids among `ids` of tenants that exist and are not being deleted. */
export async function keptTenants(tx: Db, ids: Iterable<number>): Promise<Set<number>> {
  const kept = await tx
    .select({ id: tenants.id })
    .from(tenants)
    .where(and(inArray(tenants.id, [...new Set(ids)]), isNull(tenants.deleteRequestedAt)))
    .all();
  return new Set(kept.map(({ id }) => id));
}

/** Continues all deletions that were requested. Resolves when they are complete, held by a backup, or the server stops. */
export async function deleteTenants(app: App): Promise<void> {
  const due = await app.db
    .select({ id: tenants.id, slug: tenants.slug })
    .from(tenants)
    .where(isNotNull(tenants.deleteRequestedAt))
    .orderBy(asc(tenants.id))
    .all();
  for (const tenant of due) {
    if (app.stopping.aborted) return;
    await deleteTenant(app, tenant);
  }
}

async function deleteTenant(app: App, { id, slug }: Pick<TenantRow, "id" | "slug">): Promise<void> {
  const startedAt = app.clock.now();
  const rows = await deleteTenantRows(app, id);
  // A copy of the database that a backup is making has the rows, and needs their objects.
  const mayContinue = async () => !app.stopping.aborted && !(await isDeletionHeld(app));
  if (app.objects && (await mayContinue())) await abortUploadsUnder(app.objects, tenantPrefix(id));
  const objects = app.objects ? await deletePrefix(app.objects, tenantPrefix(id), { mayContinue }) : 0;
  if (!(await mayContinue())) return;
  await app.write(async (tx) => {
    await scheduleDeletion(tx, app, [tenantPrefix(id)], LATE_MS);
    await tx.delete(tenants).where(eq(tenants.id, id));
  });
  app.log.info(
    { tenant_id: id, slug, rows, objects, took_ms: app.clock.now() - startedAt },
    "a tenant has been deleted",
  );
}
