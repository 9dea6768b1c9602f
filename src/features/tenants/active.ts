import { eq } from "drizzle-orm";
import { type App, forApp } from "#app.ts";
import { HttpError, notFound } from "#lib/base";
import { cacheUntilCommit } from "#storage/db/commit-cache.ts";
import { tenants } from "#storage/db/schema.ts";

const statusOf = forApp((app) =>
  cacheUntilCommit(app.commits, (id: number) =>
    app.db
      .select({ status: tenants.status, deleteRequestedAt: tenants.deleteRequestedAt })
      .from(tenants)
      .where(eq(tenants.id, id))
      .get(),
  ),
);

/**
 * Whether viewers and signed URLs of a tenant are served: changes apply at once in this server, and within a second
 * when another server made them. True for an id without a tenant: there is nothing to protect, and its URLs resolve to
 * nothing.
 */
export async function isActiveTenant(app: App, id: number): Promise<boolean> {
  const tenant = await statusOf(app)(id);
  return tenant === undefined || tenant.status === "active";
}

/** Whether the tenant exists, or is still being deleted: as current as `isActiveTenant`. */
export const isTenant = async (app: App, id: number): Promise<boolean> => (await statusOf(app)(id)) !== undefined;

/** Throws 403 `tenant_suspended`. For requests without an API key: viewers and signed URLs. API keys are 401 instead. */
export async function requireActiveTenant(app: App, id: number): Promise<void> {
  if (await isActiveTenant(app, id)) return;
  throw new HttpError(403, "tenant_suspended", "This account is suspended; contact the operator.");
}

/** Throws 404 when the tenant is being deleted, or does not exist any more. */
export async function requireTenantKept(app: App, id: number): Promise<void> {
  const tenant = await statusOf(app)(id);
  if (tenant === undefined || tenant.deleteRequestedAt !== null) notFound("tenant");
}
