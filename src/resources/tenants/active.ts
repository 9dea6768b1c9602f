import { eq } from "drizzle-orm";
import { cacheUntilCommit } from "../../../storage/db/commit-cache.ts";
import { tenants } from "../../../storage/db/schema.ts";
import { type App, forApp } from "../../app.ts";
import { HttpError } from "../../lib/errors.ts";

const statusOf = forApp((app) =>
  cacheUntilCommit(app.commits, (id: number) =>
    app.db.select({ status: tenants.status }).from(tenants).where(eq(tenants.id, id)).get(),
  ),
);

/**
 * Whether viewers and signed URLs of a tenant are served: changes apply at once in this server, and within a second where
 * another server made them. True for a number that is no tenant: there is nothing to protect, and its URLs lead nowhere.
 */
export async function isActiveTenant(app: App, id: number): Promise<boolean> {
  const tenant = await statusOf(app)(id);
  return tenant === undefined || tenant.status === "active";
}

/** Throws 403 `tenant_suspended`. For requests without an API key: viewers and signed URLs. API keys are 401 instead. */
export async function requireActiveTenant(app: App, id: number): Promise<void> {
  if (await isActiveTenant(app, id)) return;
  throw new HttpError(403, "tenant_suspended", "The account that this belongs to is suspended; ask its operator.");
}
